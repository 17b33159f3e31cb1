"""Strict YAML for the files that people write: plain data with the place of every value, and errors that teach.

YAML 1.2 core types and no more of YAML than JSON has; what a reader could take for something else is an error.
"""

from ci_agent.strict_yaml.document import YamlDocument, raise_problems
from ci_agent.strict_yaml.models import FileModel, validate
from ci_agent.strict_yaml.reader import load_yaml, read_yaml
from ci_agent.strict_yaml.text import Place, quote

__all__ = [
    "FileModel",
    "Place",
    "YamlDocument",
    "load_yaml",
    "quote",
    "raise_problems",
    "read_yaml",
    "validate",
]
