"""A task file becomes a task: checked, its references known, its paths resolved."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_agent.git_files import beside, read_named_file
from ci_agent.policy.file.load import is_file_name
from ci_agent.policy.matchers.regexes import parse_regex
from ci_agent.spelling import did_you_mean
from ci_agent.strict_yaml import YamlDocument, load_yaml, validate
from ci_agent.tasks.document import InputModel, TaskDocument
from ci_agent.tasks.inputs import value_problem
from ci_agent.tasks.named_things import require_named_things
from ci_agent.terminal import shortened

REFERENCE: Final = re.compile(r"\{\{(?P<name>[^{}]*)\}\}")
"""`{{ NAME }}` in a prompt; blanks around the name are not part of it."""

FILES: Final = "files"
"""The reference that stands for the files of the run."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")


@dataclass(frozen=True, slots=True)
class Task:
    file: str
    """As it was named."""
    document: TaskDocument
    policy: str
    """A shipped name, or a path that holds from the current folder."""
    context_files: tuple[str, ...]
    output_schema_file: str | None
    append_system_file: str | None

    @property
    def takes_files(self) -> bool:
        return any(found["name"].strip() == FILES for found in REFERENCE.finditer(self.document.prompt))


def load_task(path: str | Path) -> Task:
    """The task at `path`; InvalidFileError with its place for anything that cannot be run."""
    read = load_yaml(read_named_file(path, "task"), str(path), model=TaskDocument)
    document = validate(read, TaskDocument)
    for name, spec in document.inputs.items():
        _check_input(name, spec, read)
    if not document.prompt.strip():
        raise read.error(("prompt",), "the prompt is empty: write what is to be done")
    _check_references(document, read)
    require_named_things(document, read)
    schema = document.output_schema
    return Task(
        file=str(path),
        document=document,
        policy=beside(str(path), document.policy) if is_file_name(document.policy) else document.policy,
        context_files=tuple(beside(str(path), file) for file in document.context_files or ()),
        output_schema_file=beside(str(path), schema) if isinstance(schema, str) else None,
        append_system_file=beside(str(path), document.append_system_file) if document.append_system_file else None,
    )


def _check_input(name: str, spec: InputModel, read: YamlDocument) -> None:
    where = ("inputs", name)
    if name == FILES or not _NAME.fullmatch(name):
        raise read.error(where, f"{name!r} is no name of an input: a small letter, then small letters, digits and _")
    for problem in _spec_problems(spec):
        raise read.error(where, problem)
    if spec.default is not None:
        wrong = value_problem(spec, spec.default)
        if wrong:
            raise read.error((*where, "default"), f"the default {wrong}")


def _spec_problems(spec: InputModel) -> Iterator[str]:
    if (spec.type == "choice") != bool(spec.of):
        yield "a choice needs `of`, the words to choose from" if spec.type == "choice" else "only a choice has `of`"
    if spec.pattern is not None and spec.type != "string":
        yield "only a string has a `pattern`"
    if spec.state is not None and spec.type not in {"string", "revision"}:
        yield "only a string or a revision has a `state`"
    if spec.min is not None and spec.type not in {"integer", "number"}:
        yield "only a number has a `min`"
    if spec.max is not None and spec.type not in {"integer", "number", "string"}:
        yield "only a number or a string has a `max`"
    if spec.pattern is not None:
        try:
            parse_regex(spec.pattern)
        except ValueError as error:
            yield f"the pattern is no regular expression: {error}"


def _check_references(document: TaskDocument, read: YamlDocument) -> None:
    for found in REFERENCE.finditer(document.prompt):
        name, shown = found["name"].strip(), shortened(found[0], 100)
        spec = document.inputs.get(name)
        if name != FILES and spec is None:
            hint = did_you_mean(name, [FILES, *document.inputs])
            raise read.error(("prompt",), f"{shown} refers to no input{hint}")
        if spec is not None and spec.type == "text":
            raise read.error(
                ("prompt",),
                f"{shown} is untrusted text, which has no place in the prompt: it is shown to the model as data",
            )
