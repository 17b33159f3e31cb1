"""How fast a streamed answer is read: ours against the official SDKs' parsers on the same bytes, and cost per delta.

    python benchmarks/streams.py [--sdk-python PATH]

`PATH` is an interpreter with the packages `openai` and `anthropic`; without one they are looked for here, and else left
out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ci_agent.json_types import JsonObject
from ci_agent.providers.anthropic.response import read_stream as read_messages
from ci_agent.providers.openai_chat.response import read_stream as read_chat
from ci_agent.providers.wire.api import ReadStream
from ci_agent.providers.wire.assembly import Assembly

SIZE_BYTES = 10_000_000
NETWORK_READ = 16_384
TIMES = 3

SDK = """
import sys, time
try:
    import httpx2 as httpx
except ImportError:
    import httpx

path, size, api = sys.argv[1], int(sys.argv[2]), sys.argv[3]
body = open(path, "rb").read()

if api == "openai":
    from openai import OpenAI as Client
    from openai._streaming import Stream
    from openai.types.chat import ChatCompletionChunk as Event
    def text_of(event):
        return "".join(choice.delta.content or "" for choice in event.choices)
else:
    from anthropic import Anthropic as Client
    from anthropic._streaming import Stream
    from anthropic.types import RawMessageStreamEvent as Event
    def text_of(event):
        return event.delta.text if event.type == "content_block_delta" else ""

class Body(httpx.SyncByteStream):
    def __iter__(self):
        for i in range(0, len(body), size):
            yield body[i : i + size]

client = Client(api_key="none")

def once():
    request = httpx.Request("POST", "http://localhost/")
    response = httpx.Response(200, stream=Body(), request=request)
    start = time.perf_counter()
    "".join([text_of(event) for event in Stream(cast_to=Event, response=response, client=client)])
    return time.perf_counter() - start

print(min(once() for _ in range(3)))
"""


@dataclass(frozen=True)
class Case:
    name: str
    package: str
    """Of the official SDK."""
    read: ReadStream
    write: Callable[[int], bytes]
    """A stream of so many deltas, as a server sends it."""


def chat_stream(deltas: int) -> bytes:
    """With the fields that every chunk repeats."""
    head = {
        "id": "chatcmpl-x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "f",
    }
    chunks = [
        head | {"choices": [{"index": 0, "delta": {"content": f"word{n} "}, "logprobs": None, "finish_reason": None}]}
        for n in range(deltas)
    ]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def messages_stream(deltas: int) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_x", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[JsonObject] = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"word{n} "}}
            for n in range(deltas)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


CASES = (
    Case("Chat Completions", "openai", read_chat, chat_stream),
    Case("Anthropic Messages", "anthropic", read_messages, messages_stream),
)


def pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + NETWORK_READ] for start in range(0, len(body), NETWORK_READ))


def read_ours(case: Case, body: bytes) -> None:
    assembly = Assembly()
    for _ in case.read(pieces(body), assembly):
        pass
    assert assembly.stop_reason == "stop"


def parse_alone(body: bytes) -> None:
    for line in body.split(b"\n"):
        if line.startswith(b"data: {"):
            json.loads(line[6:])


def best(work: Callable[[bytes], None], body: bytes) -> float:
    return min(_seconds(work, body) for _ in range(TIMES))


def _seconds(work: Callable[[bytes], None], body: bytes) -> float:
    start = time.perf_counter()
    work(body)
    return time.perf_counter() - start


def sdk_seconds(python: str, package: str, body: bytes) -> float | None:
    """The SDK's own reading of the same bytes; None: this interpreter does not have it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body"
        path.write_bytes(body)
        command = [python, "-c", SDK, str(path), str(NETWORK_READ), package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def compare(case: Case, python: str) -> None:
    deltas = SIZE_BYTES // (len(case.write(1000)) // 1000)
    body = case.write(deltas)
    ours, alone = best(partial(read_ours, case), body), best(parse_alone, body)
    theirs = sdk_seconds(python, case.package, body)
    print(f"{len(body) / 1e6:.1f} MB of {case.name} in {deltas:,} deltas")
    print(f"  ours, read and assembled  {ours:6.2f} s  {len(body) / 1e6 / ours:6.1f} MB/s")
    print(f"  json.loads alone          {alone:6.2f} s")
    if theirs is None:
        print(f"  the SDK {case.package} is not there (give --sdk-python)")
    else:
        print(f"  the SDK {case.package:<17} {theirs:6.2f} s  {theirs / ours:6.1f} times ours (at least 2)")
    few, many = (best(partial(read_ours, case), case.write(count)) for count in (10_000, 100_000))
    print(f"  100,000 deltas take {many / few:.1f} times as long as 10,000 (at most 13)")


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast a streamed answer is read.")
    parser.add_argument("--sdk-python", default=sys.executable, help="an interpreter with the packages of the SDKs")
    python = parser.parse_args().sdk_python
    for case in CASES:
        compare(case, python)


if __name__ == "__main__":
    main()
