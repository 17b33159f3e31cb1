import json
import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.sandbox import landlock
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.confinement import Confinement, Wrapper, confinement_as_json, confinement_from_json
from ci_agent.sandbox.landlock import CONNECT_TCP, READ_DIR, READ_FILE, WRITE_FILE, Ruleset, restrict
from ci_agent.sandbox.ruleset import ruleset_for

EVERYTHING = landlock.handled_files(7)

needs_landlock = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel offers no Landlock")


def exit_status_of(work: Callable[[], None]) -> int:
    """Of a child that does the work: 0, or the number of the OSError that it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        finally:
            os._exit(254)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_domain(ruleset: Ruleset, work: Callable[[], object]) -> int:
    def restricted() -> None:
        restrict(ruleset)
        work()

    return exit_status_of(restricted)


def test_each_version_can_forbid_what_the_one_before_can_and_more() -> None:
    assert landlock.handled_files(0) == 0
    assert landlock.handled_files(1) == 0x1FFF
    assert landlock.handled_files(2) == 0x3FFF
    assert landlock.handled_files(4) == 0x7FFF
    assert landlock.handled_files(9) == 0xFFFF
    assert [landlock.handled_network(abi) for abi in (3, 4)] == [0, 3]
    assert [landlock.handled_scopes(abi) for abi in (5, 6)] == [0, 3]


def test_a_system_without_landlock_offers_version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock.abi() == 0


ODD = Ruleset(
    grants=(("/usr", READ_DIR), ("/tmp/\udcff", 3)),
    handled_files=EVERYTHING,
    handled_network=3,
    connect_ports=(443,),
    bind_ports=(8080,),
    scopes=3,
)


@pytest.mark.parametrize("confinement", [ODD, Wrapper(("/usr/bin/bwrap", "--")), None])
def test_a_confinement_survives_the_way_to_another_process(confinement: Confinement | None) -> None:
    sent = json.dumps(confinement_as_json(confinement))
    assert confinement_from_json(json.loads(sent)) == confinement


@needs_landlock
def test_what_is_granted_is_there_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "open").write_text("x")
    (folder / "closed").write_text("x")
    ruleset = Ruleset(((str(folder / "open"), READ_FILE),), landlock.handled_files(1))
    assert in_domain(ruleset, (folder / "open").read_text) == 0
    assert in_domain(ruleset, lambda: (folder / "open").open("a")) == 13
    assert in_domain(ruleset, (folder / "closed").read_text) == 13
    assert in_domain(ruleset, lambda: os.listdir(folder)) == 13


@needs_landlock
def test_what_is_not_handled_is_free(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert in_domain(Ruleset((), WRITE_FILE), (tmp_path / "a").read_text) == 0


@needs_landlock
def test_rights_of_folders_are_left_out_for_a_file(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "a"
    file.write_text("x")
    ruleset = Ruleset(((str(file), EVERYTHING),), landlock.handled_files(landlock.abi()))
    assert in_domain(ruleset, lambda: file.write_text("y")) == 0


@needs_landlock
def test_a_path_that_is_missing_or_has_become_a_link_grants_nothing(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "real").mkdir()
    (folder / "real" / "a").write_text("x")
    (folder / "link").symlink_to("real")
    grants = ((str(folder / "missing"), EVERYTHING), (str(folder / "link"), EVERYTHING), (str(folder / "link/a"), 4))
    assert in_domain(Ruleset(grants, landlock.handled_files(1)), (folder / "real" / "a").read_text) == 13


@needs_landlock
@pytest.mark.skipif(landlock.abi() < 4, reason="this version of Landlock knows no TCP")
def test_ports_are_granted_one_by_one() -> None:

    def connect_to(port: int) -> Callable[[], None]:
        return lambda: socket.create_connection(("127.0.0.1", port)).close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        granted = Ruleset((), 0, CONNECT_TCP, connect_ports=(port,))
        assert in_domain(granted, connect_to(port)) == 0
        assert in_domain(Ruleset((), 0, CONNECT_TCP), connect_to(port)) == 13


@needs_landlock
@pytest.mark.parametrize("abi", range(1, landlock.abi() + 1))
def test_each_version_of_the_interface_keeps_writes_in(tmp_path: Path, abi: int) -> None:
    folder = tmp_path.resolve()
    for name in ("inside", "outside"):
        (folder / name).mkdir()
    ruleset = ruleset_for(Access(writable=(str(folder / "inside"),)), abi)
    assert in_domain(ruleset, lambda: (folder / "inside" / "a").write_text("x")) == 0
    assert in_domain(ruleset, (folder / "inside" / "a").read_text) == 0
    assert in_domain(ruleset, lambda: (folder / "outside" / "a").write_text("x")) == 13
    assert in_domain(ruleset, lambda: Path("/dev/null").write_text("x")) == 0


@needs_landlock
def test_a_ruleset_that_the_kernel_does_not_take_is_an_error() -> None:
    assert exit_status_of(lambda: restrict(Ruleset((), 1 << 60))) == 22
    assert exit_status_of(lambda: restrict(Ruleset((), 0))) == 42  # ENOMSG: it would forbid nothing


@needs_landlock
@pytest.mark.skipif(os.getuid() != 0, reason="only root has capabilities to lose")
def test_root_keeps_what_a_container_has() -> None:
    def check() -> None:
        restrict(Ruleset((), WRITE_FILE))
        status = Path("/proc/self/status").read_text()
        (permitted,) = re.findall(r"CapPrm:\s+([0-9a-f]+)", status)
        os._exit(0 if int(permitted, 16) & ~landlock.KEPT_CAPABILITIES == 0 else 1)

    assert exit_status_of(check) == 0
