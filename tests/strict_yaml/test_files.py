import os
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.strict_yaml import read_yaml


def test_a_file_is_read_and_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.yml").write_text("a: 1\n")
    monkeypatch.chdir(tmp_path)
    document = read_yaml("p.yml", "policy")
    assert (document.value, document.file) == ({"a": 1}, "p.yml")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path / "p.yml", "policy")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/p.yml': No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path, "script")
    assert str(caught.value) == f"cannot read the script '{tmp_path}': it is a folder"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path / "pipe", "policy")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/pipe': it is not a regular file"


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_bytes(b"\n" * (4 * 1024 * 1024 + 1))
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path / "p.yml", "policy")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/p.yml': it is larger than 4 MiB"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text("a: 1")
    (tmp_path / "p.yml").chmod(0)
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path / "p.yml", "policy")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/p.yml': Permission denied"


def test_a_path_that_no_file_can_have_is_one_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml("a\0b", "policy")
    assert str(caught.value) == "cannot read the policy 'a\\x00b': embedded null byte"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: caf\xe9\n", "2:7: byte 0xe9 is not UTF-8: save the file as UTF-8"),
        ("é: é".encode() + b"\xff", "1:5: byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"a: \xed\xa0\x80", "1:4: byte 0xed is not UTF-8: save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "1:1: the file is UTF-16: save it as UTF-8"),
    ],
)
def test_what_is_not_utf_8_is_said_plainly(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "p.yml").write_bytes(data)
    with pytest.raises(InvalidFileError) as caught:
        read_yaml(tmp_path / "p.yml", "policy")
    assert str(caught.value) == f"{tmp_path}/p.yml:{message}"
