"""A task with its inputs becomes the prompt of a run, and the untrusted text beside it."""

import json
from collections.abc import Mapping, Sequence

from ci_agent.errors import ConfigurationError
from ci_agent.prompts import ContextText
from ci_agent.tasks.inputs import Value
from ci_agent.tasks.load import FILES, REFERENCE, Task


def render_task(task: Task, values: Mapping[str, Value], files: Sequence[str]) -> tuple[str, tuple[ContextText, ...]]:
    """The prompt with its references filled in, once; and the inputs that are untrusted text.

    Files stand one a line, as JSON strings: whoever names a file cannot write lines of the prompt. ConfigurationError
    when the inputs leave nothing to ask.
    """
    filled = REFERENCE.sub(lambda found: _filled(found["name"].strip(), values, files), task.document.prompt)
    if not filled.strip():
        empty = " and ".join(f"--input {name}=..." for name, value in values.items() if not str(value).strip())
        raise ConfigurationError(f"the prompt of {task.file} is empty with these inputs: give {empty}")
    texts = {name: values[name] for name, spec in task.document.inputs.items() if spec.type == "text"}
    return filled, tuple(ContextText(f"the input {name}", str(text)) for name, text in texts.items() if text)


def _filled(name: str, values: Mapping[str, Value], files: Sequence[str]) -> str:
    if name == FILES:
        return "\n".join(json.dumps(file) for file in files) or "(no files)"
    value = values[name]
    return str(value).lower() if isinstance(value, bool) else str(value)
