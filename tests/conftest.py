"""A model's server on this machine that does what each test tells it to, mistakes included, and the command.

Real sockets and plain threads: HTTP/1.1 by hand, so that it can be as wrong as any server.
"""

import json
import re
import signal
import socket
import ssl
import struct
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Literal, TypeAlias

import pytest
from forked_command import ForkedCommand
from hypothesis import settings

# No bound on how long an example may take: a busy machine halts a process for longer than any that would tell something
settings.register_profile("same examples", derandomize=True, database=None, deadline=None)
settings.register_profile("new examples", derandomize=False, deadline=None)
settings.load_profile("same examples")  # --hypothesis-profile="new examples" looks for more

Step: TypeAlias = bytes | float | threading.Event | Callable[[], object] | Literal["hang", "reset", "close"]
"""Send these bytes; be silent for so many seconds; wait for the event; call it; be silent until the client is gone;
reset the connection; close it."""
Answer: TypeAlias = Sequence[Step]


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    """As on the request line."""
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes
    connection: int
    """Which connection it came over, from 0."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def reply(status: int, body: bytes | str = b"", **headers: str) -> Answer:
    """A whole response; `_` in the names of headers stands for `-`."""
    raw = body.encode() if isinstance(body, str) else body
    return [head(status, content_length=str(len(raw)), **headers) + raw]


def head(status: int, **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said so\r\n{lines}\r\n".encode("latin-1")


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message, "code": code}})
    return reply(status, body, content_type="application/json", **headers)


def events(*data: object, done: bool = True) -> bytes:
    """A body of server-sent events."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in data]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def stream(*steps: Step) -> Answer:
    """A stream that ends with the connection."""
    return [head(200, content_type="text/event-stream", connection="close"), *steps, "close"]


@dataclass
class FaultServer:
    """Answers the nth request with the nth answer; the last answer is for all that follow."""

    answers: Sequence[Answer]
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _sockets: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._closing = threading.Event()
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._closing.set()
        for sock in (self._listener, *self._sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(10)

    def is_left(self) -> bool:
        """Whether every client closes its connections by itself, and soon."""
        deadline = time.monotonic() + 15
        for thread in self._threads[1:]:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads[1:])

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._threads.append(thread)  # only now: who finds it there may join it

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            number, self.connections = self.connections, self.connections + 1
            self._sockets.append(sock)
            self._start(lambda sock=sock, number=number: self._serve(sock, number))  # type: ignore[misc]  # mypy cannot type its defaults

    def _serve(self, sock: socket.socket, number: int) -> None:
        with suppress(OSError, ValueError):
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            with sock, sock.makefile("rb") as reader:
                while (request := _read_request(reader, number)) is not None:
                    self.requests.append(request)
                    answer = self.answers[min(next(self._numbers), len(self.answers) - 1)]
                    for step in answer:
                        self._do(sock, step)

    def _do(self, sock: socket.socket, step: Step) -> None:
        match step:
            case bytes():
                sock.sendall(step)
            case float():
                self._closing.wait(step)
            case threading.Event():
                step.wait(20)
            case "hang":
                sock.recv(1)
                raise ValueError("the client is gone")
            case "close":
                sock.shutdown(socket.SHUT_RDWR)
                raise ValueError("closed")
            case "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
                raise ValueError("reset")
            case _:
                step()


def _read_request(reader: Any, connection: int) -> Request | None:
    line = reader.readline().decode("latin-1").split()
    if len(line) != 3:
        return None
    headers = {}
    while text := reader.readline().strip().decode("latin-1"):
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    body = reader.read(int(headers.get("content-length", "0")))
    return Request(line[0], line[1], headers, body, connection)


class Faults:
    """What tests make servers and answers with."""

    reply = staticmethod(reply)
    head = staticmethod(head)
    error = staticmethod(error)
    events = staticmethod(events)
    stream = staticmethod(stream)

    def __init__(self) -> None:
        self.servers: list[FaultServer] = []

    def serve(self, *answers: Answer, tls: ssl.SSLContext | None = None) -> FaultServer:
        server = FaultServer(answers, tls)
        self.servers.append(server)
        return server

    @staticmethod
    def chat(text: str = "Hello.", *, finish: str = "stop", usage: tuple[int, int] = (10, 2), **delta: object) -> bytes:
        """The body of a whole answer of a Chat Completions server."""
        return events(*chat_chunks(text, finish=finish, usage=usage, **delta))

    @staticmethod
    def answer(
        text: str = "Hello.", *, finish: str = "stop", usage: tuple[int, int] = (10, 2), **delta: object
    ) -> Answer:
        """A Chat Completions server's whole answer, on a connection that stays open."""
        body = events(*chat_chunks(text, finish=finish, usage=usage, **delta))
        return reply(200, body, content_type="text/event-stream")


def chat_chunks(text: str, *, finish: str, usage: tuple[int, int], **delta: object) -> list[dict[str, object]]:
    said: dict[str, object] = {"content": text} if text else {}
    return [
        {"id": "r1", "model": "m-1", "choices": [{"index": 0, "delta": said | delta, "finish_reason": None}]},
        {"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"id": "r1", "choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}},
    ]


def pytest_configure() -> None:
    # Under nohup it is ignored, and so it would be by every command that tests start.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def forked_command() -> Iterator[ForkedCommand]:
    """The real command, for calls that need no start of Python of their own."""
    command = ForkedCommand()
    yield command
    command.close()


@pytest.fixture
def faults() -> Iterator[Faults]:
    made = Faults()
    yield made
    for server in made.servers:
        server.close()


RUNNER_COMMANDS = frozenset(
    {
        "add-mask",
        "add-matcher",
        "add-path",
        "debug",
        "echo",
        "endgroup",
        "error",
        "group",
        "internal-set-repo-path",
        "notice",
        "remove-matcher",
        "save-state",
        "set-env",
        "set-output",
        "stop-commands",
        "warning",
    }
)
"""The names that GitHub's runner registers (actions/runner, ActionCommandManager.cs)."""


def runner_commands(log: str) -> list[str]:
    """The lines that GitHub's runner would take for commands: its two parsers (actions/runner, ActionCommand.cs),
    a little stricter than they are.

    One wants `::name properties::` first in a line after white space, whatever its case; the other, older one
    `##[name properties]` anywhere. Lines end in LF, CR or both. .NET compares by culture, which does not see
    characters without a look of their own: they are skipped here as white space is.
    """
    return [line for line in _READ_LINE.split(log) if _is_command(line)]


_READ_LINE = re.compile("\r\n|\r|\n")
_UNSEEN = frozenset({"Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp"})
_OTHER_SERVICES = re.compile(r"##(?:vso|teamcity)\[", re.IGNORECASE)
"""Azure Pipelines and TeamCity look for these anywhere in a line; `log_parsers.py` has their whole ports."""

_OLD_COMMAND = re.compile(r"##\[([^\] ]*)[^\]]*\]")


def _is_command(line: str) -> bool:
    start = next((at for at, char in enumerate(line) if unicodedata.category(char) not in _UNSEEN), len(line))
    name, marks, _ = line[start + 2 :].partition("::")
    if line.startswith("::", start) and marks and name.split(" ")[0].lower() in RUNNER_COMMANDS:
        return True
    if _OTHER_SERVICES.search(line):
        return True
    return any(found[1].lower() in RUNNER_COMMANDS for found in _OLD_COMMAND.finditer(line))


@pytest.fixture(name="runner_commands")
def runner_commands_fixture() -> Callable[[str], list[str]]:
    """GitHub's runner reading a log: the lines that it obeys."""
    return runner_commands


def hostile_texts(count: int, seed: int) -> Iterator[str]:
    """What an attacker writes who wants to reach the runner, the page or the terminal; the same for each seed."""
    random = Random(seed)
    for _ in range(count):
        yield "".join(random.choice(_HOSTILE_PIECES) for _ in range(random.randint(1, 8)))


_HOSTILE_PIECES = (
    *(
        "::",
        ":",
        "##[",
        "#",
        "##",
        "[",
        "]",
        "::error::",
        "::add-mask::e",
        "::Warning file=x,line=1::",
        "::stop-commands::x",
    ),
    *(
        "##[add-mask]e",
        "##[group]",
        "##vso[task.setvariable variable=PATH]",
        "##TeamCity[",
        "vso[",
        "##[error x=y;]z",
        "::endgroup::",
        "::set-env name=NODE_OPTIONS::x",
        "debug",
        "%0A::error::x",
    ),
    *(
        "\n",
        "\r",
        "\r\n",
        " ",
        "\t",
        "\u00a0",
        "\u2003",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x0b",
        "\x0c",
        "\x1c",
    ),
    *(
        "\x00",
        "\x08",
        "\x1b[2J",
        "\x1b]52;c;aGk=\x07",
        "\x9b31m",
        "\u202e",
        "\u2066",
        "\u00ad",
        "\ufe0f",
        "\u0301",
        "\ud800",
    ),
    *(
        "`",
        "``````",
        "|",
        "\\",
        "</code>",
        "</details>",
        "<script>alert(1)</script>",
        "<img src=x onerror=y>",
        "<!--",
        "&lt;",
    ),
    *("@octocat", "#1", "![x](https://example.com/p.png)", "[x](javascript:y)", "https://example.com", "~~~", "$x$"),
    *(
        "]]>",
        "<![CDATA[",
        "&#8;",
        "\uffff",
        "\U0001f600",
        "\u65e5",
        "a",
        "%",
        ",",
        "=",
        '"',
        "'",
        "{0}",
        "[a](1)",
        "\\u0023[",
    ),
)


@pytest.fixture(name="hostile_texts")
def hostile_texts_fixture() -> Callable[[int, int], Iterator[str]]:
    """So many hostile texts, of a seed."""
    return hostile_texts
