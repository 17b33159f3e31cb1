"""Commands that are really confined, by each kind of sandbox that is here, as root and as an ordinary user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

from ci_agent.sandbox import landlock
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.bubblewrap import find_bubblewrap, why_unusable
from ci_agent.sandbox.confinement import Wrapper
from ci_agent.sandbox.landlock import Ruleset, restrict
from ci_agent.sandbox.sandbox import Sandbox, confine

NOBODY = 65534
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Ran:
    status: int
    text: str
    """stdout and stderr."""


@dataclass(frozen=True)
class Place:
    """A workspace, a folder for temporary files, a home, and a folder that nobody granted."""

    sandbox: Sandbox
    user: int
    top: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.top / "workspace"

    @property
    def temporary(self) -> Path:
        return self.top / "temporary"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def outside(self) -> Path:
        return self.top / "outside"

    def access(self, **more: object) -> Access:
        """What a test runner gets: the workspace and the temporary folder."""
        writable = (str(self.workspace), str(self.temporary))
        return Access(**{"writable": writable, "hidden": (str(self.home / ".ssh"),), **more})  # type: ignore[arg-type]  # fields of an Access

    def run(self, command: str, access: Access | None = None, **variables: str) -> Ran:
        """What a command printed and how it ended, confined."""
        argv = ["bash", "--noprofile", "--norc", "-c", command]
        with acting_as(self.user):
            confinement = confine(self.sandbox, access or self.access())
        if isinstance(confinement, Wrapper):
            argv = [*confinement.argv, *argv]
        environment = {"PATH": PATH, "HOME": str(self.home), "TMPDIR": str(self.temporary), **variables}
        read_end, write_end = os.pipe()
        os.fchown(write_end, self.user, -1)
        process = subprocess.Popen(
            argv,
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            preexec_fn=lambda: self._become(confinement),  # noqa: PLW1509 - the tests have one thread
        )
        os.close(write_end)
        with open(read_end, "rb") as output:
            text = output.read().decode("utf-8", "replace")
        return Ran(process.wait(110), text)

    def _become(self, confinement: object) -> None:
        if os.getuid() != self.user:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)
        if isinstance(confinement, Ruleset):
            restrict(confinement)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for each in (path, path.parent):
            os.chown(each, self.user, -1)
        return path


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """What this user may look at is all that can be seen."""
    own = os.getuid()
    os.setresuid(user, user, own)
    try:
        yield
    finally:
        os.setresuid(own, own, own)


def usable(kind: str) -> Sandbox:
    """The sandbox of this kind; skips when it is not here."""
    if kind == "landlock":
        abi = landlock.abi()
        if abi == 0:
            pytest.skip("this kernel offers no Landlock")
        return Sandbox("landlock", abi=abi)
    program = find_bubblewrap(os.environ["PATH"])
    if program is None:
        pytest.skip("bubblewrap is not installed")
    problem = why_unusable(program)
    if problem is not None:
        pytest.skip(f"bubblewrap cannot be used here: {problem}")
    return Sandbox("bubblewrap", program=program)


MakePlace: TypeAlias = Callable[[Sandbox, int], Place]


@pytest.fixture
def make_place() -> Iterator[MakePlace]:
    made: list[Path] = []

    def make(sandbox: Sandbox, user: int) -> Place:
        top = Path(os.path.realpath(tempfile.mkdtemp(prefix="ci-agent-sandbox-")))
        made.append(top)
        top.chmod(0o755)
        place = Place(sandbox, user, top)
        for folder in (place.workspace, place.temporary, place.home, place.home / ".ssh", place.outside):
            folder.mkdir()
            os.chown(folder, user, -1)
        return place

    yield make
    for top in made:
        shutil.rmtree(top)


@pytest.fixture(params=["landlock", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each kind that is here."""
    return usable(request.param)


@pytest.fixture(params=["self", "nobody"])
def place(request: pytest.FixtureRequest, sandbox: Sandbox, make_place: MakePlace) -> Place:
    """As whoever runs the tests, and as an ordinary user where that can be changed to."""
    if request.param == "nobody" and os.getuid() != 0:
        pytest.skip("only root can become another user")
    return make_place(sandbox, NOBODY if request.param == "nobody" else os.getuid())


@pytest.fixture
def landlocked(make_place: MakePlace) -> Place:
    """As whoever runs the tests, under Landlock."""
    return make_place(usable("landlock"), os.getuid())
