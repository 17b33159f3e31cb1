import random
from pathlib import Path

import pytest
import yaml

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.strict_yaml import Place, load_yaml, read_yaml

TEXT = """\
policy: 1
rules:
  - id: a
    command: ["git log",
              head]
  - {id: b, path: [x, z]}
note: >
  folded
  text
empty:
"""


def test_values_are_plain_data() -> None:
    assert load_yaml(TEXT, "f.yml").value == {
        "policy": 1,
        "rules": [{"id": "a", "command": ["git log", "head"]}, {"id": "b", "path": ["x", "z"]}],
        "note": "folded text\n",
        "empty": None,
    }


def test_every_value_and_every_key_has_its_place() -> None:
    document = load_yaml(TEXT, "f.yml")
    assert document.place() == Place(1, 1)
    assert document.place(("policy",)) == Place(1, 9)
    assert document.place(("rules", 0)) == Place(3, 5)
    assert document.place(("rules", 0, "command", 1)) == Place(5, 15)
    assert document.place(("rules", 1, "path", 1)) == Place(6, 23)
    assert document.place(("note",)) == Place(7, 7)
    assert document.key_place(("rules", 0, "command")) == Place(4, 5)
    assert document.key_place(("rules", 1, "path")) == Place(6, 13)
    assert document.key_place(("rules", 1)) == Place(6, 5)


def test_the_place_of_what_is_not_there_is_that_of_its_nearest_parent() -> None:
    document = load_yaml(TEXT, "f.yml")
    assert document.place(("rules", 1, "host", 0)) == Place(6, 5)
    assert document.place(("rules", 9)) == Place(3, 3)
    assert document.place(("policy", "x", 3)) == Place(1, 9)
    assert document.key_place(("nothing",)) == Place(1, 1)


def test_places_count_characters_and_look_through_a_byte_order_mark_and_crlf() -> None:
    document = load_yaml("\ufeff日本: 1\r\n'é': [a, \U0001f469, b]\r\n", "f.yml")
    assert document.key_place(("日本",)) == Place(1, 1)
    assert document.place(("日本",)) == Place(1, 5)
    assert document.place(("é", 2)) == Place(2, 13)


def test_an_error_names_file_line_and_column() -> None:
    assert str(load_yaml(TEXT, "dir/f.yml").error(("rules", 1, "id"), "no")) == "dir/f.yml:6:10: no"


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "--- \n...\n"])
def test_an_empty_file_is_none(text: str) -> None:
    assert load_yaml(text, "f.yml").value is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 33 + "]" * 33, "f.yml:1:33: nested more than 32 levels deep"),
        ("- " * 33, "f.yml:1:65: nested more than 32 levels deep"),
        ("{a: " * 33 + "}" * 33, "f.yml:1:129: nested more than 32 levels deep"),
        ("? " * 33, "f.yml:1:65: nested more than 32 levels deep"),
    ],
)
def test_thirty_three_levels_are_too_deep(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    assert str(caught.value) == message


def test_thirty_two_levels_are_read() -> None:
    value = load_yaml("[" * 32 + "x" + "]" * 32, "f.yml").value
    for _ in range(32):
        (value,) = value
    assert value == "x"


@pytest.mark.parametrize("parser", [None, yaml.SafeLoader])
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_a_million_levels_are_refused_before_they_are_built(opening: str, parser: type[yaml.SafeLoader] | None) -> None:
    text = opening * (3_000_000 // len(opening))
    with pytest.raises(InvalidFileError, match="nested more than 32 levels deep"):
        load_yaml(text, "f.yml", parser=parser)


def test_a_file_is_read_and_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.yml").write_text("a: 1\n")
    monkeypatch.chdir(tmp_path)
    document = read_yaml("p.yml", "policy")
    assert (document.value, document.file) == ({"a": 1}, "p.yml")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(tmp_path / "p.yml", "policy")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/p.yml': No such file or directory"


PIECES = [
    *"[]{}:,-?&*!|>'\"%@#\n =~<\\ab1",
    *("- ", ": ", "\n  ", "\n- ", "? ", "|\n", "''", '"\\', "\\u12", "---\n", "...\n", " #", "<<: ", "!!str "),
    *("%YAML 1.2\n", "&a ", "*a ", "\r\n", "é", ">-\n", "|2\n", "no", "0x1", "\\x41", "\t", "\ud800", "\\ud800"),
]


def mutated(random_source: random.Random) -> str:
    if random_source.random() < 0.4:
        return "".join(random_source.choice(PIECES) for _ in range(random_source.randint(1, 14)))
    text = TEXT
    for _ in range(random_source.randint(1, 4)):
        start = random_source.randint(0, len(text))
        end = start + random_source.choice([0, 0, 1, 2, 5])
        text = text[:start] + random_source.choice(["", *PIECES]) + text[end:]
    return text


def answer(text: str, parser: type[yaml.SafeLoader] | type[yaml.CSafeLoader]) -> object:
    try:
        return load_yaml(text, "f.yml", parser=parser).value
    except InvalidFileError:
        return InvalidFileError


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@pytest.mark.parametrize("seed", range(8))
def test_libyaml_and_pyyamls_own_parser_give_the_same_answers(seed: int) -> None:
    random_source = random.Random(seed)
    texts = [mutated(random_source) for _ in range(150)]
    assert [answer(text, yaml.CSafeLoader) for text in texts] == [answer(text, yaml.SafeLoader) for text in texts]
