"""`docker build FOLDER` sends all that `.dockerignore` does not leave out: what it leaves out is not read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

RULES = """
- {id: any, allow: bash, command: ["{docker,podman,buildah,cd,git,npm,cp,ln,echo} **"], paths: [".", "**"]}
- {id: file, allow: bash, command: ["docker build -f * **", "docker build --ignorefile * **"], paths: [".", "**"]}
- {id: files, allow: write, path: "**"}
- {id: secrets, deny: read, path: ["**/.env", "keys/**", "**/*.pem"]}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("Dockerfile", "src/a.py", ".env", "src/.env", "keys/id", "docker/Dockerfile", "other/.env"):
        put(name)
    return policy(RULES)


def _rule(policy: Policy, command: str) -> str | None:
    decision = policy.decide("bash", {"command": command})
    return None if decision.effect == "allow" else decision.rule_id or decision.code


ALL = "**/.env\nkeys\n"


@pytest.mark.parametrize(
    "command",
    [
        "docker build .",
        "docker build -t app:latest .",
        "docker build -f docker/Dockerfile -t app .",
        "docker buildx build --platform linux/amd64 -t app .",
        "docker image build .",
        "podman build -t app .",
        "buildah build .",
        "cd src && docker build ..",
        "docker build ./",
        "npm ci && docker build .",
        "docker build . && docker build -t b .",
    ],
)
def test_what_is_left_out_is_not_sent(decided: Policy, put: Put, command: str) -> None:
    assert _rule(decided, command) == "secrets"
    put(".dockerignore", ALL)
    assert _rule(decided, command) is None


@pytest.mark.parametrize(
    "ignored",
    [
        "**/.env\n/keys/\n",
        "# all\n\n*\n!src\n!Dockerfile\nsrc/.env\n",
        "*\n!src/*.py\n",
        ".env\n*/.env\nkeys/**\n",
        "**/.env\n**/keys\n!src/keys\n",
        "\ufeff.env  \r\n ./src/../src/.env\r\nother\r\nkeys\r\n",
        "**/.env*\nkey*\n!.env.example\n",
        "*\n",
    ],
)
def test_a_list_is_read_as_docker_reads_it(decided: Policy, put: Put, ignored: str) -> None:
    put(".dockerignore", ignored)
    assert _rule(decided, "docker build .") is None


@pytest.mark.parametrize(
    "ignored",
    [
        "",
        ".env\nkeys\n",
        "#**/.env\nkeys\n",
        "**/.env\nkeys\n!src/.env\n",
        "**/.env\nkeys\n!src\n",
        "**/.env\nkeys\n!**\n",
        "**/.env\nkeys\n!s[r]c/.env\n",
        "**/.env\nkeys\n!src\\/.env\n",
        "**/.env\nkeys\n! src/.env\n",
        "**/.env\nkeys\n!/src/.env\n",
        "**/.env\nkeys\n!.\n",
        "**/.ENV\nkeys\n",
        "**/.[e]nv\nkeys\n",
        "**.env\nkeys\n",
        "**/.env\nkeys/id2\n",
        "**/.env/*\nkeys\n",
        "../**/.env\nkeys\n",
    ],
)
def test_what_is_not_left_out_for_certain_is_sent(decided: Policy, put: Put, ignored: str) -> None:
    put(".dockerignore", ignored)
    assert _rule(decided, "docker build .") == "secrets"


@pytest.mark.parametrize(
    "command",
    [
        "docker build src",
        "docker build other",
        "cd other && docker build .",
        "docker build --ignorefile src/x .",
        "docker build --ignorefile=x .",
        "docker cp . app:/x",
        "echo > .dockerignore; docker build .",
        "cp src/a.py .dockerignore; docker build .",
        "docker build . && echo x >> .dockerignore",
        "echo '!.env' > Dockerfile.dockerignore; docker build .",
        "echo '!.env' > docker/Dockerfile.dockerignore; docker build -f docker/Dockerfile .",
        "git checkout main && docker build .",
        "git stash; docker build .",
        "ln .dockerignore list; docker build .; echo x > list",
    ],
)
def test_a_list_that_is_elsewhere_or_may_change_leaves_nothing_out(decided: Policy, put: Put, command: str) -> None:
    put(".dockerignore", ALL)
    assert _rule(decided, command) is not None


@pytest.mark.parametrize("file", ["Dockerfile.dockerignore", "docker/Dockerfile.dockerignore", ".containerignore"])
def test_each_list_that_may_be_read_must_leave_a_file_out(decided: Policy, put: Put, file: str) -> None:
    build = "docker build -f docker/Dockerfile ."
    put(file, ALL)
    assert _rule(decided, build) == "secrets"
    put(".dockerignore", ALL)
    assert _rule(decided, build) is None
    put(file, "keys\n")
    assert _rule(decided, build) == "secrets"


@pytest.mark.parametrize("made", ["link", "second name", "folder", "bytes", "long"])
def test_a_list_that_is_no_plain_file_leaves_nothing_out(decided: Policy, workspace: Workspace, made: str) -> None:
    place, other = workspace.root / ".dockerignore", workspace.root / "list"
    other.write_text(ALL)
    if made == "link":
        place.symlink_to("list")
    elif made == "second name":
        place.hardlink_to(other)
    elif made == "folder":
        place.mkdir()
    else:
        place.write_bytes(ALL.encode() + (b"\xff" if made == "bytes" else b"x\n" * 2_100))
    assert _rule(decided, "docker build .") == "secrets"


def test_the_build_file_is_sent_although_it_is_left_out(policy: MakePolicy, put: Put) -> None:
    put("Dockerfile")
    put(".dockerignore", "*\n")
    decided = policy(RULES + "- {id: file, deny: read, path: Dockerfile}\n".replace("id: file", "id: own"))
    assert _rule(decided, "docker build .") == "own"


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_another_name_of_a_file_that_is_left_out_is_sent(
    decided: Policy, put: Put, workspace: Workspace, kind: str
) -> None:
    put(".dockerignore", ALL)
    name = workspace.root / "src/settings"
    if kind == "link":
        os.symlink("../.env", name)
    else:
        name.hardlink_to(workspace.root / ".env")
    assert _rule(decided, "docker build .") == "secrets"
