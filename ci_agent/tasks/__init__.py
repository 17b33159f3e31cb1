"""Task files: a prompt with typed inputs and all that a run of it needs, kept beside the code that it is about."""

from ci_agent.tasks.inputs import read_inputs
from ci_agent.tasks.load import Task, load_task
from ci_agent.tasks.prompt import render_task

__all__ = ["Task", "load_task", "read_inputs", "render_task"]
