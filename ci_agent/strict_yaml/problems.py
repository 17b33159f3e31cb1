"""What pydantic refuses in a document: where it stands in the data, and which of a union's complaints was meant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_core import ErrorDetails

from ci_agent.json_types import Json
from ci_agent.strict_yaml.document import YamlDocument
from ci_agent.strict_yaml.text import Place

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    path: Path
    """Where in the document."""
    branch: tuple[str, ...]
    """Which members of unions were tried on the way."""
    fork: Path | None
    """Where the first of those unions stands; None: there was none."""
    error: ErrorDetails


EXPECTED: Mapping[str, str] = {
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "none_required": "nothing",
}


def locate(value: Json, error: ErrorDetails) -> Problem:
    """Tell the steps of pydantic's location that lead through the data from those that name members of unions."""
    *steps, last = error["loc"] or ("",)
    if error["type"] != "missing":
        steps.append(last)
    path: list[str | int] = []
    branch: list[str] = []
    fork: Path | None = None
    for step in steps:
        if _leads_on(value, step):
            value = value[step]
            path.append(step)
        elif isinstance(step, str) and step not in ("", "[key]"):
            fork = tuple(path) if fork is None else fork
            branch.append(step)
    if error["type"] == "missing":
        path.append(last)
    return Problem(tuple(path), tuple(branch), fork, error)


def _leads_on(value: Json, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def place_of(document: YamlDocument, problem: Problem) -> Place:
    if problem.error["type"] == "missing":
        return document.place(problem.path[:-1])
    if problem.error["type"] == "extra_forbidden" or problem.error["loc"][-1:] == ("[key]",):
        return document.key_place(problem.path)
    return document.place(problem.path)


def meant_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Pydantic reports the errors of every member of a union; a person wants those of the member that was meant."""
    plain = [problem for problem in problems if problem.fork is None]
    forks: dict[Path, dict[str, list[Problem]]] = {}
    for problem in problems:
        if problem.fork is not None:
            forks.setdefault(problem.fork, {}).setdefault(problem.branch[0], []).append(problem)
    return plain + [problem for branches in forks.values() for problem in _meant_branch(branches)]


def _meant_branch(branches: Mapping[str, list[Problem]]) -> list[Problem]:
    fitting = [problems for problems in branches.values() if not _is_wrong_kind(problems)]
    if fitting:
        return min(fitting, key=len)
    return [_expecting_any(list(branches.values()))]


def _is_wrong_kind(problems: Sequence[Problem]) -> bool:
    """The value is of another type than this member of the union."""
    return any(problem.path == problem.fork and problem.error["type"] in EXPECTED for problem in problems)


def _expecting_any(branches: Sequence[Sequence[Problem]]) -> Problem:
    first = branches[0][0]
    kinds = dict.fromkeys(EXPECTED.get(problems[0].error["type"], "another value") for problems in branches)
    error = ErrorDetails(
        type="union", loc=first.error["loc"], msg="", input=first.error["input"], ctx={"expected": " or ".join(kinds)}
    )
    return Problem(first.path, first.branch, first.fork, error)
