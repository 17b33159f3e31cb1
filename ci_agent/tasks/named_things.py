"""What a task file names that must be there whatever the run: models, tools, reports, a schema that is one."""

from collections.abc import Collection, Iterator
from typing import TypeAlias

from ci_agent.errors import ConfigurationError
from ci_agent.output_schema import check_output_schema
from ci_agent.providers.table import model_problem
from ci_agent.reports.table import FORMATS
from ci_agent.spelling import did_you_mean
from ci_agent.strict_yaml import Place, YamlDocument, raise_problems
from ci_agent.tasks.document import TaskDocument
from ci_agent.tools.table import TOOL_NAMES

_Found: TypeAlias = tuple[Place, str]


def require_named_things(document: TaskDocument, read: YamlDocument) -> None:
    """Raise one InvalidFileError that says of each thing which is not there where it is named."""
    checks = (_models, _tools, _reports, _schema, _results)
    raise_problems(read.file, [found for check in checks for found in check(document, read)])


def _models(document: TaskDocument, read: YamlDocument) -> Iterator[_Found]:
    fallbacks = enumerate(document.fallback_models or ())
    named = [(("fallback_models", index), model) for index, model in fallbacks]
    for path, model in [(("model",), document.model), *named]:
        problem = None if model is None else model_problem(model)
        if problem is not None:
            yield read.place(path), problem


def _tools(document: TaskDocument, read: YamlDocument) -> Iterator[_Found]:
    for index, name in enumerate(document.tools or ()):
        if name not in TOOL_NAMES:
            yield read.place(("tools", index)), _unknown("tool", name, TOOL_NAMES)


def _reports(document: TaskDocument, read: YamlDocument) -> Iterator[_Found]:
    for name in document.reports or ():
        if name not in FORMATS:
            yield read.key_place(("reports", name)), _unknown("report", name, FORMATS)


def _schema(document: TaskDocument, read: YamlDocument) -> Iterator[_Found]:
    if isinstance(document.output_schema, dict):
        try:
            check_output_schema(document.output_schema)
        except ConfigurationError as error:
            yield read.place(("output_schema",)), str(error)


def _results(document: TaskDocument, read: YamlDocument) -> Iterator[_Found]:
    reports = ((("reports", name), file) for name, file in (document.reports or {}).items())
    files = (("transcript",), document.transcript), (("answer_file",), document.answer_file), *reports
    for path, file in files:
        if file == "-":
            yield read.place(path), "it would be a file of that name and not stdout: write /dev/stdout, or another name"


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    hint = did_you_mean(name, known) or f" ({', '.join(known)})"
    return f"there is no {what} {name!r}{hint}"
