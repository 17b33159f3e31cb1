"""Task files: what they may say, what their inputs take, and the prompt that becomes of them."""

from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.prompts import ContextText
from ci_agent.tasks import Task, load_task, read_inputs, render_task

TASK = """\
task: 1
description: Review a change.
prompt: |
  Review what changed since {{ base }}, {{depth}} levels deep, strict: {{ strict }}.
  {{ files }}
inputs:
  base: {default: origin/main, pattern: "[A-Za-z0-9_./-]+", max: 40}
  depth: {type: integer, default: 3, min: 1, max: 5}
  ratio: {type: number, default: 0.5}
  strict: {type: boolean, default: false}
  level: {type: choice, of: [low, high], default: low}
  body: {type: text, default: ""}
  title: {}
policy: ../policies/night.yml
context_files: [style.md]
output_schema: answer.schema.json
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write(tmp_path, TASK)


def write(folder: Path, text: str) -> Task:
    path = folder / "tasks" / "review.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return load_task(path)


def problem_of(folder: Path, text: str) -> str:
    with pytest.raises(InvalidFileError) as caught:
        write(folder, text)
    return str(caught.value).removeprefix(f"{folder / 'tasks' / 'review.yaml'}:")


def test_paths_are_beside_the_file_and_shipped_policies_are_not(task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    assert task.policy == str(tmp_path / "policies" / "night.yml")
    assert task.context_files == (str(folder / "style.md"),)
    assert task.output_schema_file == str(folder / "answer.schema.json")
    assert write(tmp_path, "task: 1\nprompt: Go.\npolicy: read-only\n").policy == "read-only"


def test_inputs_and_files_fill_the_prompt_and_untrusted_text_stands_beside_it(task: Task) -> None:
    given = {"base": "v1", "depth": "2", "strict": "true", "title": "Fix {{ base }}", "body": "Do {{ depth }}!"}
    prompt, context = render_task(
        task, read_inputs(task.document.inputs, given, "t"), ["a b.py", "-x", "n\nl", "\udcff"]
    )
    assert prompt == (
        'Review what changed since v1, 2 levels deep, strict: true.\n"a b.py"\n"-x"\n"n\\nl"\n"\\udcff"\n'
    )
    assert context == (ContextText("the input body", "Do {{ depth }}!"),)


def test_what_an_input_says_is_no_template(tmp_path: Path) -> None:
    task = write(tmp_path, 'task: 1\nprompt: "{{ a }} {{ b }}"\npolicy: review\ninputs: {a: {}, b: {}}\n')
    assert render_task(task, {"a": "{{ b }}", "b": "{{ a }}"}, ())[0] == "{{ b }} {{ a }}"


def test_inputs_that_leave_nothing_to_ask_are_refused(tmp_path: Path) -> None:
    task = write(tmp_path, 'task: 1\nprompt: "{{ a }} {{ b }}"\npolicy: review\ninputs: {a: {}, b: {default: ""}}\n')
    with pytest.raises(ConfigurationError) as caught:
        render_task(task, {"a": " ", "b": ""}, ())
    assert str(caught.value) == (
        f"the prompt of {task.file} is empty with these inputs: give --input a=... and --input b=..."
    )
    assert render_task(task, {"a": " ", "b": "go"}, ())[0] == "  go"


def test_without_files_the_prompt_says_so(task: Task) -> None:
    prompt, _ = render_task(task, read_inputs(task.document.inputs, {"title": "x"}, "t"), ())
    assert prompt.endswith("(no files)\n")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "t needs --input title=..."),
        ({"title": "x", "bas": "y"}, "t has no input 'bas'; did you mean 'base'?"),
        ({"title": "x", "base": "a b"}, "--input base: 'a b' does not match [A-Za-z0-9_./-]+ (see t)"),
        ({"title": "x", "base": "a" * 41}, f"--input base: '{'a' * 41}' has more than 40 characters (see t)"),
        ({"title": "a\nb"}, "--input title: 'a b' has more than one line, or invisible characters (see t)"),
        ({"title": "a\u202eb"}, "--input title: 'a\\\\u202eb' has more than one line, or invisible characters (see t)"),
        ({"title": "x" * 1001}, f"--input title: '{'x' * 59}…' has more than 1000 characters (see t)"),
        ({"title": "x", "depth": "six"}, "--input depth: a whole number is wanted"),
        ({"title": "x", "depth": "6"}, "--input depth: '6' is more than 5 (see t)"),
        ({"title": "x", "depth": "0"}, "--input depth: '0' is less than 1 (see t)"),
        ({"title": "x", "depth": "1_0"}, "--input depth: a whole number is wanted"),
        ({"title": "x", "depth": "\u0664"}, "--input depth: a whole number is wanted"),
        ({"title": "x", "ratio": "nan"}, "--input ratio: a number is wanted"),
        ({"title": "x", "strict": "yes"}, "--input strict: true or false is wanted"),
        ({"title": "x", "level": "mid"}, "--input level: 'mid' is none of low, high (see t)"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(task: Task, given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_inputs(task.document.inputs, given, "t")
    assert str(caught.value) == problem


def test_defaults_and_given_values_have_their_types(task: Task) -> None:
    given = {"title": "x", "depth": "4", "ratio": "0.25", "level": "high"}
    assert read_inputs(task.document.inputs, given, "t") == {
        "base": "origin/main",
        "depth": 4,
        "ratio": 0.25,
        "strict": False,
        "level": "high",
        "body": "",
        "title": "x",
    }


HEAD = "task: 1\npolicy: review\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("task: 2\nprompt: x\npolicy: review\n", "1:7: "),
        ("prompt: x\npolicy: review\n", "1:1: "),
        (HEAD + 'prompt: ""\n', "3:9: the prompt is empty: write what is to be done"),
        (HEAD + 'prompt: " \\n"\n', "3:9: the prompt is empty: write what is to be done"),
        (HEAD + "prompt: x\nmodle: a:b\n", "4:1: "),
        (HEAD + "prompt: x\nlimits: {max_turns: 0}\n", "4:21: "),
        (HEAD + "prompt: x\nlimits: {max_turns: many}\n", "4:21: "),
        (HEAD + 'prompt: "{{ fiels }}"\n', "3:9: {{ fiels }} refers to no input; did you mean 'files'?"),
        (HEAD + 'prompt: "{{ a }}"\ninputs: {a: {type: text}}\n', "3:9: {{ a }} is untrusted text"),
        (HEAD + "prompt: x\ninputs: {files: {}}\n", "4:17: 'files' is no name of an input"),
        (HEAD + "prompt: x\ninputs: {Base: {}}\n", "4:16: 'Base' is no name of an input"),
        (HEAD + "prompt: x\ninputs: {a: {type: choice}}\n", "4:13: a choice needs `of`"),
        (HEAD + "prompt: x\ninputs: {a: {of: [b]}}\n", "4:13: only a choice has `of`"),
        (HEAD + "prompt: x\ninputs: {a: {type: integer, pattern: x}}\n", "4:13: only a string has a `pattern`"),
        (
            HEAD + "prompt: x\ninputs: {a: {type: text, state: revision}}\n",
            "4:13: only a string or a revision has a `state`",
        ),
        (HEAD + "prompt: x\ninputs: {a: {min: 1}}\n", "4:13: only a number has a `min`"),
        (HEAD + 'prompt: x\ninputs: {a: {pattern: "("}}\n', "4:13: the pattern is no regular expression"),
        (HEAD + "prompt: x\nmodel: scriptd:s.yaml\n", "4:8: 'scriptd:s.yaml' names no model: no provider"),
        (HEAD + "prompt: x\nmodel: deepseek-chat\n", "4:8: 'deepseek-chat' names no model without its provider"),
        (HEAD + 'prompt: x\nmodel: ""\n', "4:8: must not be empty"),
        (HEAD + "prompt: x\nfallback_models: [openai:a, b]\n", "4:29: 'b' names no model"),
        (HEAD + "prompt: x\ntools: [read, reed]\n", "4:15: there is no tool 'reed'; did you mean 'read'?"),
        (HEAD + 'prompt: x\ntools: ["read,ls"]\n', "4:9: there is no tool 'read,ls'"),
        (HEAD + "prompt: x\nreports: {junti: a}\n", "4:11: there is no report 'junti'; did you mean 'junit'?"),
        (HEAD + "prompt: x\ntools: []\n", "4:8: must not be empty"),
        (HEAD + 'prompt: x\nreports: {junit: ""}\n', "4:18: must not be empty"),
        (HEAD + 'prompt: x\nanswer_file: ""\n', "4:14: must not be empty"),
        (HEAD + 'prompt: x\nanswer_file: "-"\n', "4:14: it would be a file of that name and not stdout"),
        (HEAD + 'prompt: x\ntranscript: "-"\n', "4:13: it would be a file of that name and not stdout"),
        (HEAD + 'prompt: x\nreports: {junit: "-"}\n', "4:18: it would be a file of that name and not stdout"),
        (HEAD + 'prompt: x\ncontext_files: [""]\n', "4:17: must not be empty"),
        (HEAD + "prompt: x\nlimits: {timeout_s: 1e10}\n", "4:21: expected at most 1e+09"),
        (HEAD + "prompt: x\noutput_schema: {type: objekt}\n", "4:16: output schema is wrong at $.type"),
        (HEAD + "prompt: x\ninputs: {a: {default: 3}}\n", "4:23: the default is no text"),
        (HEAD + "prompt: x\ninputs: {a: {type: integer, default: 9, max: 5}}\n", "4:38: the default is more than 5"),
    ],
)
def test_a_wrong_task_is_refused_at_its_place(tmp_path: Path, text: str, problem: str) -> None:
    assert problem_of(tmp_path, text).startswith(problem)


def test_all_that_is_named_and_not_there_is_said_at_once(tmp_path: Path) -> None:
    text = HEAD + "prompt: x\nmodel: m\ntools: [raed]\nreports: {htlm: a}\n"
    file = tmp_path / "tasks" / "review.yaml"
    first, *others = problem_of(tmp_path, text).splitlines()
    assert first.startswith("4:8: 'm' names no model")
    assert others == [
        f"{file}:5:9: there is no tool 'raed'; did you mean 'read'?",
        f"{file}:6:11: there is no report 'htlm'; did you mean 'html'?",
    ]


def test_a_task_knows_whether_it_takes_files(task: Task, tmp_path: Path) -> None:
    assert task.takes_files
    assert not write(tmp_path, "task: 1\nprompt: x\npolicy: review\n").takes_files


def test_a_prompt_of_blanks_and_braces_is_looked_through_once(tmp_path: Path) -> None:
    for text in ("{{" + " " * 100_000, "{{ " * 30_000, "{{" + " a" * 50_000, "{" * 100_000):
        path = tmp_path / "blanks.yaml"
        path.write_text(f"task: 1\npolicy: deny-all\nprompt: '{text}'\n")
        load_task(path)


def test_a_reference_of_any_length_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(f"task: 1\npolicy: deny-all\nprompt: '{{{{ {'x' * 100_000} }}}}'\n")
    with pytest.raises(InvalidFileError) as caught:
        load_task(path)
    assert len(str(caught.value)) < 1_000


def test_a_wrong_pattern_is_said_once_and_nothing_else_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("task: 1\npolicy: deny-all\nprompt: x\ninputs: {a: {pattern: '(::error::x'}}\n")
    with pytest.raises(InvalidFileError, match="is no regular expression"):
        load_task(path)
    assert capfd.readouterr() == ("", "")
