import pytest

from ci_agent.errors import InvalidFileError
from ci_agent.json_types import Json
from ci_agent.strict_yaml import load_yaml


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("::1", "::1"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("8080:8080", "8080:8080"),
        ("v1", "v1"),
        ("yesterday", "yesterday"),
        ("none", "none"),
        ("--force", "--force"),
        ("a # a comment", "a"),
        ("a#b", "a#b"),
        ("src/**", "src/**"),
        ("naïve", "naïve"),
        ("2024", 2024),
        ("2024-13", "2024-13"),
    ],
)
def test_a_plain_scalar_has_its_yaml_1_2_core_type(plain: str, value: Json) -> None:
    read = load_yaml(f"key: {plain}", "f.yml").value["key"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("quoted", ["'no'", '"010"', "'2024-01-02'", '"12:30"', "'~'", '""', "'<<'", '"="'])
def test_a_quoted_scalar_is_text_whatever_it_looks_like(quoted: str) -> None:
    assert load_yaml(f"key: {quoted}", "f.yml").value == {"key": quoted[1:-1]}


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        ("no", 'no is a boolean to some readers and text to others: write "no" in quotes if text is meant, else false'),
        (
            "Off",
            'Off is a boolean to some readers and text to others: write "Off" in quotes if text is meant, else false',
        ),
        ("n", 'n is a boolean to some readers and text to others: write "n" in quotes if text is meant, else false'),
        (
            "YES",
            'YES is a boolean to some readers and text to others: write "YES" in quotes if text is meant, else true',
        ),
        ("on", 'on is a boolean to some readers and text to others: write "on" in quotes if text is meant, else true'),
        ("y", 'y is a boolean to some readers and text to others: write "y" in quotes if text is meant, else true'),
        (
            "True",
            'True is a boolean to some readers and text to others: write "True" in quotes if text is meant, else true',
        ),
        ("NULL", 'NULL is null to some readers and text to others: write "NULL" in quotes if text is meant, else null'),
        (
            "010",
            'a number with a leading zero is octal to some readers: write "010" in quotes if text is meant, else 10',
        ),
        (
            "-00",
            'a number with a leading zero is octal to some readers: write "-00" in quotes if text is meant, else -0',
        ),
        ("01.5", 'a number does not begin with a zero: write "01.5" in quotes if text is meant, else 1.5'),
        ("0o10", 'octal numbers are not supported: write "0o10" in quotes if text is meant, else 8'),
        ("0x1F", 'hexadecimal numbers are not supported: write "0x1F" in quotes if text is meant, else 31'),
        ("0b11", 'binary numbers are not supported: write "0b11" in quotes if text is meant, else 3'),
        ("1_000", 'numbers are written without underscores: write "1_000" in quotes if text is meant, else 1000'),
        ("1_0.5", 'numbers are written without underscores: write "1_0.5" in quotes if text is meant, else 10.5'),
        ("12:30", 'some readers take this for base 60: write "12:30" in quotes if text is meant, else 750'),
        ("1:30:15", 'some readers take this for base 60: write "1:30:15" in quotes if text is meant, else 5415'),
        ("2024-01-02", 'some readers take this for a date: write "2024-01-02" in quotes'),
        ("2024-1-2 10:00:00", 'some readers take this for a date: write "2024-1-2 10:00:00" in quotes'),
        (".inf", 'infinity and not-a-number are not supported: write ".inf" in quotes'),
        (".NaN", 'infinity and not-a-number are not supported: write ".NaN" in quotes'),
        ("<<", 'merge keys are not supported: write "<<" in quotes'),
        ("=", 'some readers give a single = a meaning of its own: write "=" in quotes'),
        ("1e999", "the number 1e999 is too large"),
        ("9" * 1001, "a number of 1001 characters is too long"),
    ],
)
def test_what_two_readers_could_take_differently_is_refused_with_what_to_write(plain: str, problem: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(f"key: {plain}", "f.yml")
    assert str(caught.value) == f"f.yml:1:6: {problem}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("on: 1", 'on is a boolean to some readers and text to others: write "on" in quotes'),
        ("true: 1", 'a key must be text: write "true" in quotes'),
        ("1: 1", 'a key must be text: write "1" in quotes'),
        ("~: 1", "a key is missing before the colon"),
        ("<<: {a: 1}", 'merge keys are not supported: write "<<" in quotes'),
        ("{a: 1}: 1", 'a key must be text, and "{a: 1}: 1" is a mapping: put it in quotes'),
        ("[a]: 1", 'a key must be text, and "[a]: 1" is a list: put it in quotes'),
    ],
)
def test_a_key_is_text(text: str, problem: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    assert str(caught.value) == f"f.yml:1:1: {problem}"
