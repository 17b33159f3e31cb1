"""The files that a person names, read whole: bounded, UTF-8, and one clear line when that cannot be."""

import os
import stat
from pathlib import Path

from ci_agent.errors import ConfigurationError, InvalidFileError

MAX_TEXT_FILE_BYTES = 4 * 1024 * 1024


def read_text_file(path: str | Path, what: str, *, max_bytes: int = MAX_TEXT_FILE_BYTES) -> str:
    """The text of a UTF-8 file; `what` names its role in messages ("policy", "prompt file").

    A byte order mark is dropped. Raises ConfigurationError for what is no readable file (a folder and a pipe
    included: neither is waited for), InvalidFileError for bytes that are no text.
    """
    try:
        data = read_regular_file(path, max_bytes)
    except OSError as error:
        raise ConfigurationError(f"cannot read the {what} {str(path)!r}: {os.strerror(error.errno or 0)}") from error
    except ValueError as error:
        raise ConfigurationError(f"cannot read the {what} {str(path)!r}: {error}") from error
    return decode_text(data, str(path))


def decode_text(data: bytes, file: str) -> str:
    """The text of bytes that a person supplied; InvalidFileError at the first byte that is not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFileError(file, 1, 1, "the file is UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        line_start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[line_start : error.start].decode("utf-8", "replace")) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise InvalidFileError(file, line, column, problem) from error


def read_regular_file(path: str | Path, max_bytes: int) -> bytes:
    """The bytes of a file; OSError when it cannot be read, ValueError when it is none, or larger.

    No pipe is waited for, and no device read without an end.
    """
    # Opened first and examined then, so that both see the same file; O_NONBLOCK keeps a pipe from blocking.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_kind(os.fstat(descriptor).st_mode)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise ValueError(f"it is larger than {_size(max_bytes)}")
    return data


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder")
    if not stat.S_ISREG(mode):
        raise ValueError("it is not a regular file")


def _size(count: int) -> str:
    return f"{count // 1024 // 1024} MiB" if count >= 1024 * 1024 else f"{count} bytes"
