"""A task with its inputs becomes the prompt of a run, and the untrusted text beside it."""

import json
from collections.abc import Mapping, Sequence

from ci_agent.prompts import ContextText
from ci_agent.tasks.inputs import Value
from ci_agent.tasks.load import FILES, REFERENCE, Task


def render_task(task: Task, values: Mapping[str, Value], files: Sequence[str]) -> tuple[str, tuple[ContextText, ...]]:
    """The prompt with its references filled in, once; and the inputs that are untrusted text.

    Files stand one a line, as JSON strings: whoever names a file cannot write lines of the prompt.
    """
    filled = REFERENCE.sub(lambda found: _filled(found["name"].strip(), values, files), task.document.prompt)
    texts = {name: values[name] for name, spec in task.document.inputs.items() if spec.type == "text"}
    return filled, tuple(ContextText(f"the input {name}", str(text)) for name, text in texts.items() if text)


def _filled(name: str, values: Mapping[str, Value], files: Sequence[str]) -> str:
    if name == FILES:
        return "\n".join(json.dumps(file) for file in files) or "(no files)"
    value = values[name]
    return str(value).lower() if isinstance(value, bool) else str(value)
