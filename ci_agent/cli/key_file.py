"""The key of `--api-key-file`: out of a file, or out of a descriptor that the caller has opened for it."""

import os
import re
import select
import time

from ci_agent.errors import ConfigurationError
from ci_agent.text_files import decode_text, read_text_file

MAX_KEY_BYTES = 64 * 1024

WAIT_FOR_KEY_S = 60.0
"""For whoever writes it into the pipe."""

_DESCRIPTOR = re.compile(r"/dev/fd/([0-9]{1,9})|/proc/self/fd/([0-9]{1,9})|/dev/stdin")


def read_key(path: str) -> str:
    """The key; ConfigurationError when it cannot be read, or is not alone.

    `/dev/fd/N` is read once and closed, so that the key is in no file that a tool could open.
    """
    found = _DESCRIPTOR.fullmatch(path)
    text = _read_descriptor(int(found[1] or found[2] or 0), path) if found else read_text_file(path, "API key file")
    key = text.strip()
    if not key or len(key.split()) > 1:
        raise ConfigurationError(f"the API key file {path!r} must hold one key and nothing else")
    return key


def _read_descriptor(number: int, path: str) -> str:
    if number in (1, 2):
        raise ConfigurationError(f"the API key file {path!r} is the run's own output: open another descriptor for it")
    try:
        data = _read_to_end(number)
        _close(number)
    except OSError as error:
        raise ConfigurationError(f"cannot read the API key file {path!r}: {os.strerror(error.errno or 0)}") from error
    if data is None:
        raise ConfigurationError(f"the API key file {path!r} did not end within {WAIT_FOR_KEY_S:g} s and 64 KiB")
    return decode_text(data, path)


def _read_to_end(number: int) -> bytes | None:
    """None: it has no end, or not in time."""
    deadline = time.monotonic() + WAIT_FOR_KEY_S
    waiting = select.poll()
    waiting.register(number, select.POLLIN)
    data = b""
    while len(data) <= MAX_KEY_BYTES and waiting.poll(max(deadline - time.monotonic(), 0) * 1000):
        chunk = os.read(number, MAX_KEY_BYTES)
        if not chunk:
            return data
        data += chunk
    return None


def _close(number: int) -> None:
    os.close(number)
    if number == 0:
        os.open(os.devnull, os.O_RDONLY)  # becomes 0 again, the lowest that is free
