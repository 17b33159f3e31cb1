import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.process import ProcessCancelled, Processes, child_environment, open_processes
from ci_agent.spawn.tree_limits import TreeLimits
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.bash import UPDATE_EVERY_S, BashSettings, create_bash_tool
from ci_agent.tools.truncate import count_lines
from ci_agent.workspace import open_workspace

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]


@pytest.fixture
def bash(processes: Processes, tmp_path: Path) -> Tool:
    return create_bash_tool(open_workspace(tmp_path), child_environment(os.environ), processes)


def failure(call: Call, tool: Tool, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(tool, **arguments)
    return caught.value


def without_duration(details: JsonObject | None) -> JsonObject:
    assert details is not None
    assert 0 < details["duration_s"] < 60
    return {name: value for name, value in details.items() if name != "duration_s"}


def test_what_a_command_prints_is_the_result(bash: Tool, call: Call) -> None:
    result = call(bash, command="echo out; echo err >&2")
    assert result.content == (TextContent("out\nerr\n"),)
    assert without_duration(result.details) == {
        "exit_status": 0,
        "signal": None,
        "timed_out": False,
        "killed_because": None,
        "left_background": False,
        "output_bytes": 8,
        "truncated": False,
        "omitted_bytes": 0,
        "omitted_lines": 0,
        "replaced": 0,
    }


def test_a_silent_success_is_said_in_words(bash: Tool, call: Call, text_of: TextOf) -> None:
    assert text_of(call(bash, command="true")) == "(no output)"


def test_a_failure_is_an_error_that_ends_in_the_exit_status(bash: Tool, call: Call) -> None:
    error = failure(call, bash, command="echo half; printf done; exit 3")
    assert str(error) == "half\ndone\nexit status 3"
    assert without_duration(error.details) == {
        "exit_status": 3,
        "signal": None,
        "timed_out": False,
        "killed_because": None,
        "left_background": False,
        "output_bytes": 9,
        "truncated": False,
        "omitted_bytes": 0,
        "omitted_lines": 0,
        "replaced": 0,
    }


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("false", "(no output)\nexit status 1"),
        ("no-such-program", "bash: line 1: no-such-program: command not found\nexit status 127"),
        ("/etc/passwd", "bash: line 1: /etc/passwd: Permission denied\nexit status 126"),
        ("kill -9 $$", "(no output)\nkilled by signal 9 (SIGKILL)"),
        ("-x", "bash: line 1: -x: command not found\nexit status 127"),
        ("--version", "bash: line 1: --version: command not found\nexit status 127"),
        ("read -r answer", "(no output)\nexit status 1"),
    ],
)
def test_each_way_to_fail_has_its_words(bash: Tool, call: Call, command: str, text: str) -> None:
    assert str(failure(call, bash, command=command)) == text


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="macOS has no real-time signals")
def test_a_signal_without_a_name_is_told_by_its_number(bash: Tool, call: Call) -> None:
    number = signal.SIGRTMIN + 1
    assert str(failure(call, bash, command=f"kill -{number} $$")) == f"(no output)\nkilled by signal {number}"


def test_a_time_out_keeps_the_output_so_far(bash: Tool, call: Call) -> None:
    for timeout_s in (1, 5, 25):  # a busy machine may take longer than a second to start a program
        error = failure(call, bash, command="echo started; exec sleep 60", timeout=timeout_s)
        if "started" in str(error):
            break
    assert str(error) == (
        f"started\ntimed out after {timeout_s} s and was killed; what it printed until then is above; "
        "timeout may be up to 600"
    )
    details = without_duration(error.details)
    assert (details["timed_out"], details["exit_status"], details["signal"]) == (True, None, 15)


def test_the_default_time_out_and_the_longest_one_are_the_factorys(
    processes: Processes, tmp_path: Path, call: Call
) -> None:
    tool = create_bash_tool(
        open_workspace(tmp_path),
        child_environment(os.environ),
        processes,
        BashSettings(default_timeout_s=0.2, max_timeout_s=0.4),
    )
    assert "timed out after 0.2 s" in str(failure(call, tool, command="sleep 60"))
    assert str(failure(call, tool, command="sleep 60", timeout=600)) == (
        "(no output)\ntimed out after 0.4 s and was killed; what it printed until then is above"
    )


def test_the_parameters_are_closed_and_bounded(bash: Tool) -> None:
    parameters = bash.parameters
    assert (parameters["required"], parameters["additionalProperties"]) == (["command"], False)
    assert list(parameters["properties"]) == ["command", "timeout", "description"]
    timeout = parameters["properties"]["timeout"]
    assert (timeout["type"], timeout["exclusiveMinimum"], timeout["maximum"]) == ("number", 0, 600.0)
    assert (bash.name, bash.execution_mode) == ("bash", "sequential")


def test_a_command_runs_in_the_workspace_and_its_cd_does_not_last(
    bash: Tool, call: Call, text_of: TextOf, tmp_path: Path
) -> None:
    call(bash, command="cd / && export LEFT=1 && umask 0")
    assert text_of(call(bash, command='pwd; echo "$LEFT$1$2$*"')) == f"{tmp_path}\n\n"


def test_a_workspace_that_is_gone_is_an_error(processes: Processes, tmp_path: Path, call: Call) -> None:
    (tmp_path / "gone").mkdir()
    tool = create_bash_tool(open_workspace(tmp_path / "gone"), child_environment(os.environ), processes)
    (tmp_path / "gone").rmdir()
    assert "cannot be started: No such file or directory" in str(failure(call, tool, command="true"))


def test_no_start_file_is_read(processes: Processes, tmp_path: Path, call: Call, text_of: TextOf) -> None:
    for name in (".bashrc", ".bash_profile", ".profile", "env"):
        (tmp_path / name).write_text("echo canary\n")
    parent = {"HOME": str(tmp_path), "BASH_ENV": str(tmp_path / "env"), "ENV": str(tmp_path / "env")}
    parent["BASH_FUNC_echo%%"] = "() { printf canary; }"
    tool = create_bash_tool(
        open_workspace(tmp_path), child_environment(parent, ["BASH_ENV", "ENV", "BASH_FUNC_*"]), processes
    )
    assert text_of(call(tool, command="echo fine")) == "fine\n"


def test_a_program_called_bash_in_the_workspace_is_not_the_shell(
    processes: Processes, tmp_path: Path, call: Call, text_of: TextOf
) -> None:
    fake = tmp_path / "bash"
    fake.write_text("#!/bin/sh\necho canary\n")
    fake.chmod(0o755)
    tool = create_bash_tool(
        open_workspace(tmp_path), child_environment({"PATH": f"{tmp_path}:/usr/bin:/bin"}), processes
    )
    assert text_of(call(tool, command="echo fine")) == "fine\n"


def test_long_output_keeps_its_beginning_and_its_end_and_says_what_is_missing(
    bash: Tool, call: Call, text_of: TextOf
) -> None:
    result = call(bash, command="seq 1000000")
    text = text_of(result)
    lines = text.splitlines()
    (note,) = (line for line in lines if line.startswith("[... "))
    shown = [line for line in lines if line != note]
    details = without_duration(result.details)
    assert (lines[0], lines[-1]) == ("1", "1000000")
    assert details["output_bytes"] == 6_888_896
    assert details["omitted_lines"] == 1_000_000 - len(shown)
    assert details["omitted_bytes"] == 6_888_896 - sum(len(line) + 1 for line in shown)
    assert note == f"[... {details['omitted_bytes']:,} bytes in {details['omitted_lines']:,} lines left out ...]"
    assert details["truncated"] is True
    assert len(text) <= 50_000
    assert count_lines(text) <= 2_000


@pytest.mark.parametrize(
    ("command", "size"),
    [
        ("head -c 49000 /dev/zero | tr '\\0' x", 49_000),
        ("head -c 50001 /dev/zero | tr '\\0' x", 50_001),
        ("head -c 3000000 /dev/zero | tr '\\0' x", 3_000_000),
        ("head -c 60000 /dev/zero | tr '\\0' '\\377'", 60_000),
        ("yes é | head -n 30000 | tr -d '\\n'", 60_000),
        ("yes é | head -n 1990", 1990 * 3),
        ("yes é | head -n 1991", 1991 * 3),
    ],
)
def test_output_of_any_shape_stays_within_the_limits_also_in_an_error(
    bash: Tool, call: Call, command: str, size: int
) -> None:
    error = failure(call, bash, command=f"{command}; sleep 60 & exit 1")
    details = without_duration(error.details)
    assert str(error).endswith("nothing outlives its call.]\nexit status 1")
    assert len(str(error).encode()) <= 50_000
    assert count_lines(str(error)) <= 2_000
    assert details["output_bytes"] == size
    assert details["truncated"] == ("left out ...]" in str(error))


def test_a_character_that_the_cut_goes_through_is_not_broken(bash: Tool, call: Call, text_of: TextOf) -> None:
    for shift in range(3):
        result = call(bash, command=f"printf %{shift}s; yes € | head -n 40000 | tr -d '\\n'")
        assert without_duration(result.details)["replaced"] == 0
        assert set(text_of(result).replace("left out", "")) <= set("€ \n[.] 0123456789,bytes")


def test_bytes_that_are_not_utf8_are_replaced_and_counted(bash: Tool, call: Call, text_of: TextOf) -> None:
    result = call(bash, command=r"printf 'a\xff\xfeb\xef\xbf\xbdc\xe2\x82'")
    assert text_of(result) == "a\ufffd\ufffdb\ufffdc\ufffd"
    assert without_duration(result.details)["replaced"] == 3


def test_control_characters_and_colours_stay_as_they_came(bash: Tool, call: Call, text_of: TextOf) -> None:
    assert text_of(call(bash, command=r"printf '\e[31mred\e[0m\0\a\r\n'")) == "\x1b[31mred\x1b[0m\0\a\r\n"


@pytest.mark.parametrize("size", [100_000, 100_001, 131_072, 200_000, 256_000])
def test_a_command_too_long_for_one_argument_runs_all_the_same(
    bash: Tool, call: Call, text_of: TextOf, size: int
) -> None:
    """Characters of two bytes, so that the pieces end in the middle of one."""
    end = '\nprintf \'%s|\' $# "$0" "$*" "${IFS@Q}" ${#x} a  b; exit 0'
    start = "x='"
    filling = "é" * ((size - len(start) - len(end) - 1) // 2)
    command = f"{start}{filling}'{end}"
    assert text_of(call(bash, command=command)) == f"0|bash||$' \\t\\n'|{len(filling)}|a|b|"


def test_a_long_command_fails_as_a_short_one_does(bash: Tool, call: Call) -> None:
    comment = "# " + "x" * 150_000
    assert str(failure(call, bash, command=f"{comment}\nexit 7")) == "(no output)\nexit status 7"
    assert "syntax error" in str(failure(call, bash, command=f"{comment}\n)"))


def test_a_command_longer_than_the_system_takes_is_an_error(bash: Tool, call: Call) -> None:
    error = failure(call, bash, command="true " + "x" * 10_000_000)
    assert str(error).endswith("the command and its environment are longer than the system accepts")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo a\0b", "command contains a NUL character at position 6; no command line can."),
        ("echo \ud800", "command contains the lone surrogate U+D800 at position 5, which is no character;"),
        ("echo \udcff", "command contains the lone surrogate U+DCFF at position 5, which is no character;"),
    ],
)
def test_what_no_command_line_can_hold_is_refused(bash: Tool, call: Call, command: str, problem: str) -> None:
    assert str(failure(call, bash, command=command)).startswith(problem)


def test_something_left_in_the_background_is_killed_and_the_result_says_so(
    bash: Tool, call: Call, text_of: TextOf
) -> None:
    result = call(bash, command="(sleep 60 &); echo hi")
    assert text_of(result) == (
        "hi\n[It left something running in the background, which has been killed: nothing outlives its call.]"
    )
    details = without_duration(result.details)
    assert details["left_background"] is True


def test_a_cancelled_command_shows_what_it_had_printed_and_passes_the_cancellation_on(
    bash: Tool, tmp_path: Path
) -> None:
    cancel = CancelToken()
    updates: list[ToolResult] = []

    def cancel_when_started() -> None:
        while not (tmp_path / "started").exists():
            cancel.wait(0.01)
        cancel.cancel("the run was cancelled")

    threading.Thread(target=cancel_when_started).start()
    with pytest.raises(ProcessCancelled, match="the run was cancelled"):
        bash.execute("call_1", {"command": "echo hi; touch started; exec sleep 60"}, cancel, updates.append)
    assert updates[-1].content == (TextContent("hi\n"),)
    assert without_duration(updates[-1].details)["signal"] == 15


def test_updates_show_the_end_of_a_growing_output_now_and_then(bash: Tool, tmp_path: Path) -> None:
    updates: list[ToolResult] = []

    def keep(update: ToolResult) -> None:
        updates.append(update)
        (tmp_path / "seen").touch()

    command = "n=0; until [ -e seen ]; do echo $((++n)); sleep 0.1; done; yes | head -c 100000"
    result = bash.execute("call_1", {"command": command, "timeout": 60}, CancelToken(), keep)
    assert result.details is not None
    texts = [part.text for update in updates for part in update.content if isinstance(part, TextContent)]
    assert 1 <= len(texts) <= result.details["duration_s"] / UPDATE_EVERY_S
    assert texts[0].startswith("1\n")
    assert all(len(text) <= 4_000 for text in texts)


def test_a_quick_command_reports_nothing_on_the_way(bash: Tool) -> None:
    updates: list[ToolResult] = []
    bash.execute("call_1", {"command": "echo hi"}, CancelToken(), updates.append)
    assert updates == []


def test_with_a_spill_folder_the_whole_output_is_in_a_private_file(
    processes: Processes, tmp_path: Path, call: Call
) -> None:
    spills = tmp_path / "spills"
    spills.mkdir()
    tool = create_bash_tool(
        open_workspace(tmp_path), child_environment(os.environ), processes, BashSettings(spill_folder=spills)
    )
    success = call(tool, command="seq 200000")
    error = failure(call, tool, command="echo bad; exit 1")
    assert success.details is not None
    assert error.details is not None
    whole, short = Path(success.details["output_file"]), Path(error.details["output_file"])
    assert sorted(spills.iterdir()) == sorted([whole, short])
    assert whole.read_text() == "".join(f"{n}\n" for n in range(1, 200_001))
    assert short.read_text() == "bad\n"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (whole, short)} == {0o600}


def test_a_spill_folder_that_is_gone_is_on_record_and_the_command_runs(
    processes: Processes, tmp_path: Path, call: Call, text_of: TextOf
) -> None:
    gone = tmp_path / "gone"
    tool = create_bash_tool(
        open_workspace(tmp_path), child_environment(os.environ), processes, BashSettings(spill_folder=gone)
    )
    result = call(tool, command="echo hi")
    details = without_duration(result.details)
    assert (text_of(result), details["output_file_problem"]) == ("hi\n", f"{gone}: No such file or directory")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be counted without a /proc")
def test_a_command_that_was_killed_for_its_size_says_so(tmp_path: Path, call: Call) -> None:
    with open_processes(limits=TreeLimits(max_processes=3, max_memory_bytes=1 << 40)) as few:
        tool = create_bash_tool(open_workspace(tmp_path), child_environment(os.environ), few)
        error = failure(call, tool, command="echo before; for n in 1 2 3 4 5; do sleep 60 & done; wait")
    assert str(error) == "before\nwas killed: it had more than 3 processes"
    assert (error.details or {})["killed_because"] == "it had more than 3 processes"
