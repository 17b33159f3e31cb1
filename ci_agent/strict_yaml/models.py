"""Plain data against a pydantic model, with errors that say where in the file, what is wrong and what to write."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ci_agent.strict_yaml.document import YamlDocument, raise_problems
from ci_agent.strict_yaml.explanations import explain, explain_empty
from ci_agent.strict_yaml.problems import locate, meant_problems, place_of


class FileModel(BaseModel):
    """A mapping in a file: unknown keys are errors, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


MAX_EXPLAINED = 1_000
"""More errors than a person mends at once; explaining takes time for each."""

Model = TypeVar("Model", bound=BaseModel)


def validate(document: YamlDocument, model: type[Model]) -> Model:
    """The document as a model; raise InvalidFileError that names every problem, each on a line of its own.

    Nothing is converted, so a field that takes a list is declared `list[...]`, not `tuple[...]`. A validator's
    ValueError is shown as it is, at the value that it refused.
    """
    if document.value is None:
        raise document.error((), explain_empty(model))
    try:
        return model.model_validate(document.value, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_EXPLAINED]
        found = [locate(document.value, one) for one in details]
        lines = [(place_of(document, problem), explain(problem, model)) for problem in meant_problems(found)]
    raise_problems(document.file, lines)
    raise AssertionError("a validation error without errors")
