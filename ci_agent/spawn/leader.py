"""From the fork to the exec of a command, which leads a session and a process group of its own."""

import errno
import json
import os
import resource
import traceback
from collections.abc import Mapping
from typing import NoReturn

from ci_agent.sandbox.access import lies_in
from ci_agent.sandbox.confinement import Wrapper
from ci_agent.sandbox.landlock import Domain, Ruleset, build, enter, grant_mounted
from ci_agent.sandbox.namespaces import leave_shared_ipc, take_own_shared_memory
from ci_agent.sandbox.ruleset import SHARED_MEMORY
from ci_agent.spawn.protocol import Request

_MOST_TOLD_BYTES = 65_536
"""As much as a pipe takes at once."""


def start_leader(request: Request, stdout: int, stderr: int) -> int:
    """The id of the new process, which runs the program; OSError, with the path in question, if it cannot be run.

    It has its parent's signal mask, handlers (which an exec takes away), limits and privileges: see `server`.
    """
    # Whatever is done before the fork is not done in a process whose every page is copied when it is touched.
    environment = {os.fsencode(name): os.fsencode(value) for name, value in request.environment.items()}
    domain = build(request.confinement) if isinstance(request.confinement, Ruleset) else None
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_command(request, environment, domain, (stdout, stderr), write_end)
    os.close(write_end)
    if domain is not None:
        os.close(domain.descriptor)
    error = os.read(read_end, _MOST_TOLD_BYTES)
    os.close(read_end)
    if error:
        os.waitpid(pid, 0)  # it is about to exit
        number, text = json.loads(error)
        raise OSError(number, os.strerror(number), text) if number else RuntimeError(text)
    return pid


def _become_command(
    request: Request, environment: Mapping[bytes, bytes], domain: Domain | None, outputs: tuple[int, int], tell: int
) -> NoReturn:
    """What goes wrong is told, and nothing is run."""
    path = None
    try:
        os.setsid()
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        if request.limits.max_user_processes is not None:
            path = "its limits"
            _allow_processes(request.limits.max_user_processes)
        path = request.cwd
        os.chdir(path)
        leave_shared_ipc()
        if domain is not None:
            path = "its sandbox"
            _own_shared_memory(request, domain)
            enter(domain)
        argv = _words(request)
        path = argv[0]
        os.execvpe(path, argv, environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        os.write(tell, json.dumps([error.errno, path]).encode("ascii"))
    except Exception:  # noqa: BLE001 - a bug, which is told like the rest
        os.write(tell, json.dumps([None, traceback.format_exc()[-_MOST_TOLD_BYTES // 8 :]]).encode("ascii"))
    finally:
        os._exit(127)


def _allow_processes(most: int) -> None:
    """No more than there may be already: only root may raise a limit, and nobody should."""
    present = [limit for limit in resource.getrlimit(resource.RLIMIT_NPROC) if limit != resource.RLIM_INFINITY]
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (min([most, *present]),) * 2)
    except ValueError as error:  # that is how Python tells EPERM here
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM)) from error


def _own_shared_memory(request: Request, domain: Domain) -> None:
    """Unless what the command works on lies there."""
    ruleset = request.confinement
    if not isinstance(ruleset, Ruleset) or SHARED_MEMORY not in dict(ruleset.grants):
        return
    places = [request.cwd, *(path for path, _ in ruleset.grants if path != SHARED_MEMORY)]
    if not any(lies_in(place, SHARED_MEMORY) for place in places) and take_own_shared_memory():
        grant_mounted(domain, ruleset, SHARED_MEMORY)


def _words(request: Request) -> list[str]:
    wrapper = request.confinement.argv if isinstance(request.confinement, Wrapper) else ()
    return [*wrapper, *request.argv]
