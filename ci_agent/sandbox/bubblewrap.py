"""bubblewrap: a program that starts another in namespaces of its own, where the kernel has no Landlock."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from glob import glob
from typing import Final

from ci_agent.sandbox.access import Access, lies_in, places_to_hide
from ci_agent.sandbox.confinement import Wrapper

_TRIAL_S: Final = 10.0

_KEPT_BY_ROOT: Final = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_NET_BIND_SERVICE",
)
"""With more of them root could undo the mounts."""


DAEMONS: Final = (
    "/run/containerd",
    "/run/crio",
    "/run/dbus",
    "/run/docker.sock",
    "/run/incus",
    "/run/libvirt",
    "/run/lxd",
    "/run/podman",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/user",
)
"""Where those listen who would start a program outside the sandbox for whoever asks."""

AGENTS: Final = ("/tmp/ssh-*", "/tmp/.X11-unix", "/tmp/dbus-*")  # noqa: S108 - nothing is written there
"""Where those listen who sign with somebody's keys, or show and type on somebody's screen: patterns."""


def find_bubblewrap(search_path: str) -> str | None:
    """Where bubblewrap is, on absolute folders of a PATH; None: nowhere."""
    folders = [folder for folder in search_path.split(os.pathsep) if os.path.isabs(folder)]
    return shutil.which("bwrap", path=os.pathsep.join(folders))


def why_unusable(program: str) -> str | None:
    """Why it cannot confine anything here, found out by trying; None: it can.

    Many systems forbid the namespaces that it needs, to it or to all but root.
    """
    argv = [*wrapper_for(Access(), program).argv, "/bin/true"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"


def wrapper_for(access: Access, program: str) -> Wrapper:
    """The words that start a command with this access. Every process of it dies with ci-agent."""
    return Wrapper((program, *_options(access), "--"))


def _options(access: Access) -> Iterator[str]:
    yield from ("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
    if os.geteuid() == 0:
        for name in _KEPT_BY_ROOT:
            yield from ("--cap-add", name)
    if not access.network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    for path in access.writable:
        yield from ("--bind-try", path, path)
    yield from _protect(access)
    yield from _hide(access)


def _protect(access: Access) -> Iterator[str]:
    """A folder above that could be renamed would take what is protected out of its place; a mounted one cannot be."""
    for path in filter(os.path.lexists, access.protected):
        above = os.path.dirname(path)
        if any(lies_in(above, place) and above != place for place in access.writable):
            yield from ("--bind", above, above)
    for path in access.protected:
        yield from ("--ro-bind-try", path, path)


def _hide(access: Access) -> Iterator[str]:
    # Anybody may put a link there, to something that is needed.
    agents = (path for pattern in AGENTS for path in glob(pattern) if not os.path.islink(path))
    hidden = list(dict.fromkeys(places_to_hide((*DAEMONS, *agents, *access.hidden))))
    folders = [path for path in hidden if os.path.isdir(path)]
    for path in hidden:
        yield from ("--tmpfs", path) if path in folders else ("--ro-bind", "/dev/null", path)
    for path in access.readable:
        yield from ("--ro-bind-try", path, path)
    for path in folders:
        yield from ("--remount-ro", path)
