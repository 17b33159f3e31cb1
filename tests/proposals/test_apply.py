"""`ci-agent apply`, as a job runs it: hostile files against a real API on loopback, and a real git server behind it."""

import base64
import http.server
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from forked_command import ForkedCommand, Run
from jsonschema import Draft202012Validator

from ci_agent.cli.apply import apply_command
from ci_agent.errors import CIAgentError
from ci_agent.policy.file.load import load_policy_source
from ci_agent.proposals.file import proposals_schema

Git = Callable[..., str]

TOKEN = "ghs_0123456789abcdefghijABCDEFGHIJ012345"
RUN = "021e94a1-9faa-4d17-83b5-e15eb0480cd6"

POLICY = """\
policy: 1
proposals:
  comment: {max_count: 2, max_chars: 200, prefix: "Triage:"}
  label: {names: [bug, docs], max_count: 2}
  issue: {title_prefix: "[bot]", max_title_chars: 40}
  patch: {paths: ["src/**"], max_bytes: 2000, branch_prefix: bot/}
rules: [{id: out, allow: propose}]
"""

DIFF = """\
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-a = 1
+a = 2
"""

COMMENT = {"kind": "comment", "body": 'Triage:\n\nIt\'s `$(touch CANARY)`; "quoted" \\ back'}
LABELS = {"kind": "label", "labels": ["bug", "docs"]}
ISSUE = {"kind": "issue", "title": "[bot] Broken", "body": "It is."}


@dataclass
class GitHubStandIn:
    """GitHub's API and git server, as far as this needs it. Every request needs the token."""

    root: Path
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    posted: list[tuple[str, Any]] = field(default_factory=list)
    refused: int = 0
    port: int = 0

    def handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._git(b"")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if not self.path.startswith("/api/"):
                    self._git(body)
                    return
                if self.headers["authorization"] != f"Bearer {TOKEN}":
                    self._answer(401, b'{"message": "Bad credentials"}')
                    return
                path = self.path.removeprefix("/api/repos/acme/site/")
                stand_in.posted.append((path, json.loads(body)))
                status, answer = stand_in.answers.get(path, (201, {"html_url": f"https://github.test/{path}"}))
                self._answer(status, json.dumps(answer).encode())

            def _git(self, body: bytes) -> None:
                basic = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
                if self.headers["authorization"] != f"Basic {basic}":
                    stand_in.refused += 1
                    self._answer(401, b"", "WWW-Authenticate", 'Basic realm="x"')
                    return
                path, _, query = self.path.partition("?")
                environment = {
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(stand_in.root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("content-type") or "",
                    "REMOTE_USER": "x",
                    "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding") or "",
                }
                argv = ["git", "http-backend"]
                done = subprocess.run(argv, input=body, env=environment, check=True, capture_output=True)
                head, _, answer = done.stdout.partition(b"\r\n\r\n")
                fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
                status = next((int(value[:3]) for name, value in fields if name == "Status"), 200)
                self._answer(status, answer, "Content-Type", dict(fields).get("Content-Type", ""))

            def _answer(
                self, status: int, body: bytes, name: str = "Content-Type", value: str = "application/json"
            ) -> None:
                self.send_response(status)
                self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        return Handler


@pytest.fixture
def github(tmp_path: Path, checkout: Path, git: Git) -> Iterator[GitHubStandIn]:
    remote = tmp_path / "server/acme/site.git"
    remote.parent.mkdir(parents=True)
    git("clone", "-q", "--bare", str(checkout), str(remote))
    git("config", "http.receivepack", "true", folder=remote)
    stand_in = GitHubStandIn(tmp_path / "server")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), stand_in.handler())
    stand_in.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield stand_in
    server.shutdown()
    thread.join(10)
    server.server_close()


@dataclass(frozen=True)
class Job:
    """The job that applies: a checkout, the file of the other job, the policy."""

    folder: Path
    checkout: Path
    base: str
    environment: dict[str, str]
    run: Run

    def document(self, *proposals: object, **other: object) -> dict[str, Any]:
        return {
            "schema": "ci-agent.proposals/1",
            "run": {"id": RUN, "exit_code": 0},
            "policy": {"name": "policy.yml", "sha256": load_policy_source(self.folder / "policy.yml").sha256},
            "repository": "acme/site",
            "proposals": list(proposals),
            **other,
        }

    def patch(self, diff: str = DIFF, **other: object) -> dict[str, object]:
        return {"kind": "patch", "title": "Set a", "body": "Why.", "base": self.base, "diff": diff, **other}

    def apply(self, written: object, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        text = written if isinstance(written, str) else json.dumps(written)
        (self.folder / "proposals.json").write_text(text)
        arguments = ["apply", "../proposals.json", "--policy", "../policy.yml", *args]
        return self.run(arguments, cwd=self.checkout, env={**self.environment, **environment})

    def do(self, *proposals: object) -> subprocess.CompletedProcess[str]:
        return self.apply(self.document(*proposals), "--token-env", "GITHUB_TOKEN")


@pytest.fixture
def job(tmp_path: Path, checkout: Path, git: Git, github: GitHubStandIn, forked_command: ForkedCommand) -> Job:
    (tmp_path / "policy.yml").write_text(POLICY)
    (tmp_path / "event.json").write_text(json.dumps({"issue": {"number": 7}}))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(tmp_path),
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": f"http://127.0.0.1:{github.port}/api",
        "GITHUB_SERVER_URL": f"http://127.0.0.1:{github.port}",
        "GITHUB_REPOSITORY": "acme/site",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REF_TYPE": "branch",
        "GITHUB_REF_NAME": "main",
    }
    return Job(tmp_path, checkout, git("rev-parse", "HEAD"), environment, forked_command.run)


# What it does


def test_everything_is_done_with_the_token_and_said(job: Job, github: GitHubStandIn, git: Git) -> None:
    done = job.do(COMMENT, LABELS, ISSUE, job.patch())
    assert (done.returncode, done.stderr) == (0, "")
    branch = f"bot/{RUN[:13]}"
    assert github.posted == [
        ("issues/7/comments", {"body": COMMENT["body"]}),
        ("issues/7/labels", {"labels": ["bug", "docs"]}),
        ("issues", {"title": "[bot] Broken", "body": "It is."}),
        ("pulls", {"title": "Set a", "body": "Why.", "head": branch, "base": "main"}),
    ]
    assert [line.split("  ")[-1] for line in done.stdout.splitlines()] == [
        f"https://github.test/{path}" for path, _ in github.posted
    ]
    remote = github.root / "acme/site.git"
    assert git("show", f"{branch}:src/a.py", folder=remote) == "a = 2"
    assert git("rev-parse", f"{branch}^", folder=remote) == job.base
    assert git("log", "-1", "--format=%an|%B", branch, folder=remote) == (
        f"github-actions[bot]|Set a\n\nProposed by run {RUN} of ci-agent."
    )
    assert github.refused == 1, "the token went out before it was asked for"


def test_the_checkout_is_not_written_to(job: Job, git: Git) -> None:
    before = sorted(str(path) for path in job.checkout.rglob("*"))
    assert job.do(job.patch()).returncode == 0
    assert sorted(str(path) for path in job.checkout.rglob("*")) == before
    assert git("status", "--porcelain") == ""


def test_a_dry_run_checks_all_and_does_nothing(job: Job, github: GitHubStandIn) -> None:
    done = job.apply(job.document(COMMENT, LABELS, job.patch()), "--dry-run", "--token-env", "GITHUB_TOKEN")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"would comment on #7 ({len(COMMENT['body'])} characters)",
            "would label #7 bug, docs",
            f"would open the pull request 'Set a' from bot/{RUN[:13]} into main",
        ],
    )
    assert github.posted == []
    assert github.refused == 0


def test_the_commands_do_the_same_when_bash_runs_them(job: Job, tmp_path: Path, git: Git) -> None:
    """With a `gh` that writes down its arguments and its stdin, and git itself."""
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin/gh"
    gh.write_text(
        f"#!{sys.executable}\nimport json, sys\nbody = sys.stdin.read() if '--body-file' in sys.argv else None\n"
        f"print(json.dumps([sys.argv[1:], body]))\n"
    )
    gh.chmod(0o755)
    printed = job.apply(job.document(COMMENT, LABELS, ISSUE, job.patch()))
    assert printed.returncode == 0
    git("clone", "-q", "--bare", str(job.checkout), str(tmp_path / "origin.git"))
    git("remote", "add", "origin", str(tmp_path / "origin.git"))
    environment = {**job.environment, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    argv = ["bash", "-c", printed.stdout]
    done = subprocess.run(argv, cwd=job.checkout, env=environment, check=True, capture_output=True, text=True)
    branch = f"bot/{RUN[:13]}"
    repo = ["--repo", "acme/site"]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [["issue", "comment", "7", *repo, "--body-file", "-"], COMMENT["body"]],
        [["issue", "edit", "7", *repo, "--add-label=bug", "--add-label=docs"], None],
        [["issue", "create", *repo, "--title=[bot] Broken", "--body-file", "-"], "It is."],
        [["pr", "create", *repo, "--head", branch, "--base", "main", "--title=Set a", "--body-file", "-"], "Why."],
    ]
    assert git("show", f"{branch}:src/a.py", folder=tmp_path / "origin.git") == "a = 2"
    assert not (job.checkout / "CANARY").exists()


def test_a_file_that_proposes_nothing_is_applied_at_once(job: Job) -> None:
    done = job.do()
    assert (done.returncode, done.stdout) == (0, "nothing is proposed\n")


def test_what_fails_does_not_keep_the_rest_from_being_done(job: Job, github: GitHubStandIn) -> None:
    github.answers["issues/7/comments"] = (403, {"message": "Resource not accessible\n::error::by integration"})
    done = job.do(COMMENT, LABELS)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("not done: comment on #7")
    assert done.stdout.splitlines()[1].startswith("done: label #7")
    assert "GitHub answers 403: Resource not accessible ::error::by integration" in done.stderr
    assert not any(line.startswith("::") for line in done.stderr.splitlines())


def test_a_branch_that_is_there_is_never_written_to(job: Job, github: GitHubStandIn, git: Git) -> None:
    remote, branch = github.root / "acme/site.git", f"bot/{RUN[:13]}"
    git("branch", branch, folder=remote)
    done = job.do(job.patch())
    assert done.returncode == 1
    assert "stale info" in done.stderr
    assert git("rev-parse", branch, folder=remote) == job.base
    assert github.posted == []


@pytest.mark.parametrize("variable", ["GITHUB_API_URL", "GITHUB_SERVER_URL"])
@pytest.mark.parametrize("url", ["http://example.com", "https://x@example.com", "file:///srv", "https://"])
def test_attack_the_token_goes_to_no_address_in_the_clear(
    job: Job, github: GitHubStandIn, variable: str, url: str
) -> None:
    written = job.document(COMMENT, job.patch())
    assert "a token goes to a plain https address alone" in refused(job, github, written, **{variable: url})


def test_the_token_is_in_no_argument_and_no_variable_of_git(job: Job, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    spy = tmp_path / "bin/git"
    real = subprocess.run(
        ["/bin/sh", "-c", "command -v git"], check=True, capture_output=True, text=True
    ).stdout.strip()
    spy.write_text(f'#!/bin/sh\n{{ echo "$@"; env; }} >> {tmp_path}/seen\nexec {real} "$@"\n')
    spy.chmod(0o755)
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    assert job.apply(job.document(job.patch()), "--token-env", "GITHUB_TOKEN", **environment).returncode == 0
    seen = (tmp_path / "seen").read_text()
    assert "push" in seen
    assert TOKEN not in seen
    assert base64.b64encode(TOKEN.encode()).decode()[:20] not in seen


# What it refuses: whoever wrote the file, nothing of it is done


def refused(job: Job, github: GitHubStandIn, written: object, **environment: str) -> str:
    """The message; nothing was sent, not even what was right beside it."""
    proposals = job.folder / "proposals.json"
    proposals.write_text(written if isinstance(written, str) else json.dumps(written))
    argv = [str(proposals), "--policy", str(job.folder / "policy.yml"), "--token-env", "GITHUB_TOKEN"]
    runner = CliRunner(env={**job.environment, **environment})
    done = runner.invoke(apply_command, [*argv, "--checkout", str(job.checkout)], standalone_mode=False)
    assert isinstance(done.exception, CIAgentError), done.output
    assert (done.exception.exit_code, done.stdout, github.posted, github.refused) == (3, "", [], 0)
    message = str(done.exception)
    assert TOKEN not in message
    return message


@pytest.mark.parametrize(
    ("proposals", "message"),
    [
        ([COMMENT] * 3, "2 comments at most, and this would make 3"),
        ([ISSUE, ISSUE], "1 issue at most, and this would make 2"),
        ([LABELS, LABELS], "2 labels at most, and this would make 4"),
        ([COMMENT, {"kind": "label", "labels": ["admin"]}], "the label 'admin' may not be proposed"),
        ([{"kind": "comment", "body": "Triage:\n\n" + "x" * 200}], "the body has 209 characters, and 200 are the most"),
        ([{"kind": "comment", "body": "no prefix"}], "does not begin with 'Triage:'"),
        ([{"kind": "comment", "body": "Triage:\n\n@octocat"}], "holds what GitHub would act on"),
        ([{"kind": "comment", "body": "Triage:\n\n<!-- CANARY -->"}], "holds what GitHub would act on"),
        ([{"kind": "comment", "body": "Triage:\n\nfixes #1"}], "holds what GitHub would act on"),
        ([{"kind": "comment", "body": "Triage:\n\na\u200bb"}], "holds what GitHub would act on"),
        ([{"kind": "comment", "body": f"Triage:\n\n{TOKEN}"}], "holds a secret"),
        ([{"kind": "comment", "body": f"Triage:\n\n{TOKEN[::-1]}"}], "holds a secret"),
        ([{"kind": "issue", "title": "[bot] " + "x" * 40, "body": "x"}], "the title has 46 characters"),
        ([{"kind": "issue", "title": "Official", "body": "x"}], "the title does not begin with '[bot]'"),
        ([{"kind": "issue", "title": "[bot] a\nb", "body": "x"}], "holds no proposals"),
        ([{"kind": "release", "title": "x"}], "holds no proposals"),
        ([{**COMMENT, "number": 1}], "holds no proposals"),
        ([{**COMMENT, "body": ["x"]}], "holds no proposals"),
        ([COMMENT] * 101, "holds no proposals"),
    ],
)
def test_attack_a_file_that_breaks_the_bounds(
    job: Job, github: GitHubStandIn, proposals: list[object], message: str
) -> None:
    assert message in refused(job, github, job.document(*proposals))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"policy": {"name": "policy.yml", "sha256": "0" * 64}}, "it was made under another policy"),
        ({"run": {"id": RUN, "exit_code": 5}}, "its run ended with exit code 5"),
        ({"run": {"id": "../../main", "exit_code": 0}}, "holds no proposals"),
        ({"repository": "evil/site"}, "it is about the repository evil/site"),
        ({"schema": "ci-agent.proposals/2"}, "holds no proposals"),
        ({"target": "evil/site"}, "holds no proposals"),
    ],
)
def test_attack_a_file_of_another_run(job: Job, github: GitHubStandIn, other: dict[str, Any], message: str) -> None:
    assert message in refused(job, github, job.document(COMMENT, **other))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 100_000, '{"schema": 1, "schema": 2}', '"\\ud800"', "NaN", "9" * 5_000]
)
def test_attack_a_file_that_is_none(job: Job, github: GitHubStandIn, text: str) -> None:
    assert refused(job, github, text).count("\n") == 0


def new_file(path: str, text: str = "CANARY", mode: str = "100644") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (new_file("../CANARY"), "does not apply"),
        (new_file("src/../../CANARY"), "does not apply"),
        (new_file("/tmp/CANARY"), "does not apply"),
        (new_file(".git/hooks/pre-commit"), "does not apply"),
        (new_file("src/.git/config"), "does not apply"),
        (new_file(".github/workflows/evil.yml"), "may not be in a patch"),
        (new_file("src/.gitattributes"), "may not be in a patch"),
        (new_file("README2.md"), "may not be in a patch"),
        (DIFF + new_file("README2.md"), "may not be in a patch"),
        (new_file("src/link", "/etc/passwd", "120000"), "is a symbolic link"),
        (new_file("src/run.sh", "#!/bin/sh", "100755"), "is executable"),
        (new_file("src/module", "Subproject commit " + "1" * 40, "160000"), "is a submodule"),
        ("diff --git a/src/a.py b/src/a.py\nold mode 100644\nnew mode 100755\n", "its mode is changed"),
        ("diff --git a/README.md b/src/r.md\nrename from README.md\nrename to src/r.md\n", "'README.md' may not be"),
        (new_file("src/x.py", "a\u202eb"), "characters that nobody sees"),
        (new_file("src/x.py", TOKEN), "holds a secret"),
        (new_file("src/x.py", "x" * 3_000), "2000 are the most"),
        ("not a diff\n", "does not apply"),
        (new_file("src/x.bin").partition("---")[0] + "GIT binary patch\nliteral 9999999999\n", "has binary parts"),
        (DIFF.replace("a = 1", "a = 7"), "does not apply"),
        ("--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 1\n", "the patch changes nothing"),
    ],
)
def test_attack_a_patch_that_is_not_what_the_policy_allows(
    job: Job, github: GitHubStandIn, diff: str, message: str
) -> None:
    assert message in refused(job, github, job.document(COMMENT, job.patch(diff)))
    assert not list(job.folder.rglob("CANARY"))


def test_attack_a_patch_of_another_commit(job: Job, github: GitHubStandIn, git: Git) -> None:
    git("commit", "-q", "--allow-empty", "-m", "evil")
    other = git("rev-parse", "HEAD")
    git("reset", "-q", "--hard", job.base)
    assert "is checked out here" in refused(job, github, job.document(job.patch(base=other)))


def test_attack_two_patches(job: Job, github: GitHubStandIn) -> None:
    assert "1 patch" in refused(job, github, job.document(job.patch(), job.patch()))


def test_attack_a_checkout_that_names_programs_runs_none(job: Job, git: Git) -> None:
    canary, evil = job.folder / "canary", job.folder / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    evil.chmod(evil.stat().st_mode | stat.S_IXUSR)
    for name in ("pre-push", "post-index-change", "reference-transaction"):
        (job.checkout / ".git/hooks" / name).write_text(evil.read_text())
        (job.checkout / ".git/hooks" / name).chmod(0o755)
    for key in ("core.fsmonitor", "credential.helper", "core.sshCommand", "filter.x.clean", "filter.x.smudge"):
        git("config", key, str(evil))
    git("config", f"url.{job.folder}/elsewhere/.insteadOf", "http://127.0.0.1")
    (job.checkout / ".git/info/attributes").write_text("* filter=x\n")
    assert job.do(job.patch()).returncode == 0
    assert not canary.exists()


def test_attack_a_redirect_does_not_get_the_token(job: Job, github: GitHubStandIn) -> None:
    github.answers["issues/7/comments"] = (307, {"message": "Moved"})
    done = job.do(COMMENT)
    assert (done.returncode, len(github.posted)) == (1, 1)
    assert "GitHub answers 307: Moved" in done.stderr


def test_attack_printed_commands_hold_no_command_to_the_runner(
    job: Job, runner_commands: Callable[[str], list[str]]
) -> None:
    body = "Triage:\n\nx\n::error::CANARY\n##[add-mask]e\n::stop-commands::x"
    done = job.apply(job.document({"kind": "comment", "body": body}, job.patch(new_file("src/x", "##[group]x"))))
    assert done.returncode == 0
    assert runner_commands(done.stdout) == []


def test_where_it_goes_is_said_by_the_job_alone(job: Job) -> None:
    document = job.document(COMMENT)
    without = job.apply(document, GITHUB_EVENT_PATH="")
    assert (without.returncode, "say --number" in without.stderr) == (3, True)
    said = job.apply(document, "--number", "12")
    assert "gh issue comment 12 --repo acme/site" in said.stdout
    assert job.apply(document, "--repo", "evil; touch CANARY").returncode == 3
    assert job.apply(job.document(job.patch()), "--into", "-x").returncode == 3


def test_a_token_that_is_not_there_is_an_error_before_anything_is_done(job: Job) -> None:
    done = job.apply(job.document(COMMENT), "--token-env", "NO_SUCH")
    assert (done.returncode, done.stdout) == (3, "")
    assert "--token-env NO_SUCH: no such variable is set" in done.stderr


def test_attack_a_token_with_a_header_in_it_is_refused_and_not_shown(job: Job, github: GitHubStandIn) -> None:
    message = refused(job, github, job.document(COMMENT), GITHUB_TOKEN=f"{TOKEN}\r\nX-Evil: 1")
    assert "characters that no token has" in message


def test_the_schema_is_printed_and_takes_what_is_applied(job: Job) -> None:
    printed = job.apply("", "--schema")
    schema = json.loads(printed.stdout)
    assert schema == proposals_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(job.document(COMMENT, LABELS, ISSUE, job.patch()))
    assert re.search("ci-agent.proposals/1", printed.stdout)
