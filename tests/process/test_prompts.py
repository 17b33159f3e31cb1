"""Programs that would wait for somebody: each ends by itself, for nobody is there."""

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ci_agent.process import ProcessResult

Run = Callable[..., "ProcessResult"]

FOR_EVER_S = 60.0
"""Who is at it for so long waits for somebody, also on a machine that is busy with other things."""


def prompt(program: str, command: str) -> object:
    missing = pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    return pytest.param(command, marks=missing, id=command)


PROMPTS = [
    prompt("bash", "read x"),
    prompt("bash", "read -s -p 'Password: ' x < /dev/tty"),
    prompt("bash", "select x in a b; do exit 0; done; exit 1"),
    prompt("python3", "python3 -c 'input()'"),
    prompt("python3", "python3 -c 'import getpass; getpass.getpass()'"),
    prompt("passwd", "passwd"),
    prompt("sudo", "sudo -k -u nobody true; sudo -S -k -u '#4242' -v; false"),
    prompt("su", "su nobody -s /bin/false"),
    prompt("ssh", "ssh -p 9 -o ConnectTimeout=3 nobody@127.0.0.1 true"),
    prompt("ssh-keygen", "ssh-keygen -q -t ed25519 -N secret -f key && ssh-keygen -y -f key"),
    prompt("ssh-keygen", "touch key && ssh-keygen -q -t ed25519 -f key"),
    prompt("openssl", "openssl genrsa -aes256 -out key.pem"),
    prompt("gpg", "gpg --homedir . -c key"),
    prompt("git", "git init -q . && git -c user.name=a -c user.email=a@b.invalid commit --allow-empty"),
    prompt("git", "git init -q . && echo a > a && git add -N a && git add -p && exit 1"),
    prompt("npm", "npm init"),
    prompt("npm", "npm login --registry {url}"),
    prompt("gh", "gh auth login"),
    prompt("gh", "gh pr create"),
    prompt("docker", "docker login 127.0.0.1:9"),
    prompt("mysql", "mysql -h 127.0.0.1 -P 9 -p"),
    prompt("psql", "psql -h 127.0.0.1 -p 9 -W"),
    prompt("crontab", "crontab -e && exit 1"),
]


class _Asks(BaseHTTPRequestHandler):
    """Wants to know who is there, whatever is asked."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="canary"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_GET  # noqa: N815 - the names that the library looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name for it
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Asks)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("command", PROMPTS)
def test_a_program_that_asks_fails_and_does_not_wait(run: Run, url: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    result = run(command.replace("{url}", url), cwd=tmp_path / "prompts", timeout_s=FOR_EVER_S)
    assert (result.timed_out, result.exit_status == 0) == (False, False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    "command", ["push -q {url}x.git HEAD", "fetch {url}x.git", "clone {url}x.git", "ls-remote {url}"]
)
def test_git_does_not_ask_for_the_password_that_a_server_wants(
    run: Run, url: str, command: str, tmp_path: Path
) -> None:
    init = "git init -q . && git -c user.name=a -c user.email=a@b.invalid commit -q --allow-empty -m x && git "
    result = run(init + command.replace("{url}", url), cwd=tmp_path, timeout_s=FOR_EVER_S)
    assert (result.timed_out, result.exit_status) == (False, 128)
    assert b"terminal prompts disabled" in result.output.head
