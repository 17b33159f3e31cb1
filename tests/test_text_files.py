"""Files that a person names: read whole, or refused in one clear line."""

import os
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.text_files import read_text_file


def test_a_file_is_read_whole_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes("\ufeffgrüße\n".encode())
    assert read_text_file(file, "prompt file") == "grüße\n"


def test_each_file_that_cannot_be_read_is_named_with_its_reason(tmp_path: Path) -> None:
    latin, large, pipe = tmp_path / "latin.txt", tmp_path / "large.txt", tmp_path / "pipe"
    latin.write_bytes(b"one\ntwo gr\xfc\xdfe\n")
    large.write_bytes(b"x" * 11)
    os.mkfifo(pipe)
    problems = {}
    for path in (latin, large, pipe, tmp_path, tmp_path / "missing", tmp_path / "nul\0"):
        with pytest.raises(ConfigurationError) as refused:
            read_text_file(path, "prompt file", max_bytes=10 if path == large else 1000)
        problems[path.name] = str(refused.value).replace(str(tmp_path), "DIR")
    assert problems == {
        "latin.txt": "DIR/latin.txt:2:7: byte 0xfc is not UTF-8: save the file as UTF-8",
        "large.txt": "cannot read the prompt file 'DIR/large.txt': it is larger than 10 bytes",
        "pipe": "cannot read the prompt file 'DIR/pipe': it is not a regular file",
        tmp_path.name: "cannot read the prompt file 'DIR': it is a folder",
        "missing": "cannot read the prompt file 'DIR/missing': No such file or directory",
        "nul\0": "cannot read the prompt file 'DIR/nul\\x00': embedded null byte",
    }
