"""From the fork to the exec of a command, which leads a session and a process group of its own."""

import json
import os
import resource
import signal
import traceback
from contextlib import suppress
from typing import NoReturn

from ci_agent.spawn.kernel import forbid_new_privileges, set_dumpable
from ci_agent.spawn.protocol import Request

IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
"""By the server and the supervisors, who end when ci-agent does; commands get the defaults back."""

_MAX_OPEN_FILES = 65_536
"""Some programs close, one by one, as many as they might have: hours, with the 2**30 of some containers."""

_FIRST_FOR_THE_KERNEL_TO_KILL = "1000"
"""oom_score_adj: when memory runs out, a command goes before ci-agent, which has the record to close."""


def start_leader(request: Request, stdout: int, stderr: int) -> int:
    """The id of the new process, which runs the program; OSError, with the path in question, if it cannot be run."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_command(request, stdout, stderr, write_end)
    os.close(write_end)
    with open(read_end, "rb") as told:
        error = told.read()
    if error:
        os.waitpid(pid, 0)
        number, text = json.loads(error)
        raise OSError(number, os.strerror(number), text) if number else RuntimeError(text)
    return pid


def _become_command(request: Request, stdout: int, stderr: int, tell: int) -> NoReturn:
    """What goes wrong is told, and nothing is run."""
    path = None
    try:
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        _reset_signals()
        _limit_resources(request)
        _step_down()
        path = request.cwd
        os.chdir(path)
        path = request.argv[0]
        environment = {os.fsencode(name): os.fsencode(value) for name, value in request.environment.items()}
        os.execvpe(path, list(request.argv), environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        os.write(tell, json.dumps([error.errno, path]).encode("ascii"))
    except Exception:  # noqa: BLE001 - a bug, which is told like the rest
        os.write(tell, json.dumps([None, traceback.format_exc()]).encode("ascii"))
    finally:
        os._exit(127)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (*IGNORED_SIGNALS, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _limit_resources(request: Request) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    _lower_limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES, most)
    if request.limits.max_user_processes is not None:
        _lower_limit(resource.RLIMIT_NPROC, request.limits.max_user_processes, request.limits.max_user_processes)


def _lower_limit(which: int, to: int, hard: int) -> None:
    soft, _ = resource.getrlimit(which)
    if soft == resource.RLIM_INFINITY or soft > to:
        resource.setrlimit(which, (to, hard))


def _step_down() -> None:
    """Be the first to go when memory runs out, and never gain a privilege."""
    set_dumpable(True)  # or the next file would be root's
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_FIRST_FOR_THE_KERNEL_TO_KILL)
    forbid_new_privileges()
