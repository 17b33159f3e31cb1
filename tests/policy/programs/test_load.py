"""The data of the profiles: well formed, complete, and the same to this package's reader and to any TOML reader."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ci_agent.policy.programs.load as load_module
from ci_agent.policy.programs.languages import LANGUAGES, find_reader
from ci_agent.policy.programs.load import (
    ProfileError,
    find_profile,
    load_profile,
    profile_from,
    program_names,
    read_section,
    section_names,
)
from ci_agent.policy.programs.profile import HAZARDS

_DATA = Path(load_module.__file__).parent / "data"
_FILES = sorted(_DATA.glob("*.toml"))

_EXPECTED = """
    ls cat head tail wc sort uniq comm join paste cut tr split csplit shuf iconv tee cp mv rm ln mkdir rmdir touch
    chmod chown install dd truncate mktemp stat du df date sleep seq basename dirname realpath readlink id uname
    whoami hostname nproc env printenv nice nohup timeout stdbuf find grep egrep fgrep rg ag sed awk gawk mawk git
    tar zip unzip gzip gunzip zcat xz zstd bzip2 curl wget jq yq ssh scp rsync docker podman kubectl helm gh npm npx
    pnpm yarn node deno bun python python3 pip uv poetry pytest ruff mypy black flake8 eslint tsc prettier jest go
    gofmt cargo rustc make cmake ninja mvn gradle terraform psql mysql sqlite3 redis-cli bash sh dash zsh xargs time
    command sudo su watch script flock setsid ionice unshare chroot perl ruby php java javac gcc cc clang ld diff
    patch file strings xxd od hexdump base64 sha256sum md5sum openssl printf echo test [ [[ true false cd pwd export
    read eval exec . source trap set shopt alias builtin declare local readonly unset mapfile hash enable type ps
    kill pkill lsof free column less more man tree which xmllint envsubst
""".split()  # noqa: SIM905  # reads better than two hundred quoted names


@pytest.mark.parametrize("section", [name for name in section_names() if not name.startswith("shared")])
def test_every_section_makes_a_profile(section: str) -> None:
    profile = load_profile(section)
    assert profile.name == section
    assert profile.language is None or profile.language in LANGUAGES
    assert profile.instead | profile.dry | profile.delegates <= profile.options.keys()
    for option in profile.options.values():
        assert option.why or option.meaning not in HAZARDS, option
        assert re.fullmatch(r"[-+][^\s=]+", option.name), option


def test_the_programs_of_ci_have_profiles() -> None:
    assert [name for name in _EXPECTED if find_profile(name) is None] == []
    assert len(program_names()) > 300


def test_an_unknown_program_has_none() -> None:
    assert find_profile("frobnicate") is None
    assert find_profile("shared") is None


def test_every_language_is_spoken_by_a_program() -> None:
    spoken = {load_profile(name).language for name in section_names() if not name.startswith("shared")}
    assert spoken - {None} == LANGUAGES.keys()
    assert all(callable(find_reader(language)) for language in LANGUAGES)


@pytest.mark.parametrize("file", _FILES, ids=lambda path: path.name)
def test_data_files_are_toml_and_mean_the_same_to_its_reader(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    document = tomllib.loads(text)
    assert document.pop("format") == load_module.FORMAT
    for parts, also, body in load_module.split_sections(text, file.name):
        table: Mapping[str, Any] = document
        for part in parts:
            table = table[part]
        own = {key: value for key, value in table.items() if key in read_section(body)}
        assert read_section(body) == own
        assert " ".join(also) == table.get("also", "")
        assert all(isinstance(value, dict) for key, value in table.items() if key not in own and key != "also")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"flag": "-a"}, "unknown key"),
        ({"flags": "-a -a"}, "listed twice"),
        ({"flags": "-a", "takes": {"read": "-a"}}, "listed twice"),
        ({"flags": "a"}, "is no option"),
        ({"takes": {"reads": "-a"}}, "is no meaning"),
        ({"operands": "file"}, "not understood"),
        ({"operands": "read... write..."}, "not understood"),
        ({"syntax": "dos"}, "dos"),
        ({"flags": "-l*"}, "swallow"),
        ({"unlisted": "fine"}, "is not one of"),
        ({"launches": "yes"}, "is not one of"),
        ({"why": {"-x": "runs"}}, "not listed"),
        ({"uses": "nothing"}, "nothing"),
        ({"short_equals": "-f"}, "is not one of"),
        ({"short_equals": True, "syntax": "words"}, "no clusters"),
    ],
)
def test_wrong_data_is_refused(data: Mapping[str, Any], message: str) -> None:
    with pytest.raises((ProfileError, KeyError), match=message):
        profile_from("tool", data, None)


@pytest.mark.parametrize("line", ["flags = [1]", "flags = '-a'", "flags", 'flags = "a" why', "flags = 1", "a b = true"])
def test_lines_of_another_form_are_refused(line: str) -> None:
    with pytest.raises(ProfileError, match="not of the form"):
        read_section(line)


def test_a_key_is_not_given_twice() -> None:
    with pytest.raises(ProfileError, match="appears twice"):
        read_section('takes.read = "-a"\ntakes.read = "-b"')


def test_a_data_file_names_its_format() -> None:
    with pytest.raises(ProfileError, match="format = 1"):
        list(load_module.split_sections("[cat]\n", "x.toml"))


def test_the_example_of_the_guide_is_a_profile() -> None:
    guide = Path(__file__).parents[3] / "docs" / "programs.md"
    example = guide.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    ((parts, also, body),) = load_module.split_sections(f"format = 1\n\n{example}", guide.name)
    profile = profile_from(" ".join(parts), read_section(body), None)
    assert (profile.name, also) == ("sort", ["gsort"])
    assert profile.options["-o"].why == "writes its result to a file"
    assert tomllib.loads(example)["sort"]["takes"]["data"] == "-k --key -t"
