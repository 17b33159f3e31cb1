"""The files that people write, read whole."""

import os
import stat
from pathlib import Path

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.strict_yaml.reader import YamlDocument, load_yaml
from ci_agent.strict_yaml.text import MAX_BYTES


def read_yaml(path: str | Path, what: str) -> YamlDocument:
    """Read a YAML file; `what` names it in messages ("policy", "script")."""
    return load_yaml(read_text_file(path, what), str(path))


def read_text_file(path: str | Path, what: str) -> str:
    """The text of a UTF-8 file of 4 MiB at most.

    Raises ConfigurationError for what is no readable file (a folder and a pipe included: neither is waited for),
    InvalidFileError for bytes that are no text.
    """
    try:
        data = _read(path)
    except OSError as error:
        raise ConfigurationError(f"cannot read the {what} {str(path)!r}: {os.strerror(error.errno or 0)}") from error
    except ValueError as error:
        raise ConfigurationError(f"cannot read the {what} {str(path)!r}: {error}") from error
    return _decode(data, str(path))


def _read(path: str | Path) -> bytes:
    # Opened first and examined then, so that both see the same file; O_NONBLOCK keeps a pipe from blocking.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_kind(os.fstat(descriptor).st_mode)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    return data


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder")
    if not stat.S_ISREG(mode):
        raise ValueError("it is not a regular file")


def _decode(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFileError(file, 1, 1, "the file is UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        line_start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[line_start : error.start].decode("utf-8", "replace")) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise InvalidFileError(file, line, column, problem) from error
