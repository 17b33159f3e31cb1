"""Reading the files that a person names: whole, bounded, UTF-8, with one clear line when that cannot be."""

import os
import stat
from pathlib import Path

from ci_agent.errors import ConfigurationError

MAX_TEXT_FILE_BYTES = 4 * 1024 * 1024


def read_text_file(path: str | Path, what: str, *, max_bytes: int = MAX_TEXT_FILE_BYTES) -> str:
    """The text of a file; `what` names its role in the error ("policy", "prompt file").

    A byte order mark is dropped. Raises ConfigurationError for a file that is missing, a folder, a pipe or a
    device, larger than `max_bytes`, or not UTF-8.
    """
    return decode_text(_read_bytes(path, what, max_bytes), what, str(path))


def decode_text(data: bytes, what: str, name: str) -> str:
    """UTF-8 text of bytes that a person supplied; ConfigurationError names the first byte that is wrong."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{what} {name!r} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}; save it as UTF-8"
        ) from error


def _read_bytes(path: str | Path, what: str, max_bytes: int) -> bytes:
    try:
        # A pipe without a writer would block the open for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigurationError(f"{what} {str(path)!r} cannot be read: {reason}") from error
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise ConfigurationError(f"{what} {str(path)!r} is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise ConfigurationError(f"{what} {str(path)!r} is not a regular file")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ConfigurationError(f"{what} {str(path)!r} is larger than {max_bytes} bytes")
    return data
