import pytest

from ci_agent.policy.matchers.command_patterns import (
    parse_command_pattern,
    parse_env_pattern,
    parse_has_token,
    split_command_pattern,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("git status", ("git", "status")),
        ("  git \t log  ** ", ("git", "log", "**")),
        ("git {status,diff} **", ("git", "{status,diff}", "**")),
        ("git log '--format=%h %s'", ("git", "log", "--format=%h %s")),
        ('jq ".a"', ("jq", ".a")),
        ("find . -name '*.py'", ("find", ".", "-name", r"\*.py")),
        ("find . -name *.py", ("find", ".", "-name", "*.py")),
        ("echo '**'", ("echo", r"\*\*")),
        (r"echo a\ b \{x,y\}", ("echo", "a b", r"\{x\,y\}".replace("\\,", ","))),
        ("npm run ''", ("npm", "run", "")),
        ("[ -f *", ("[", "-f", "*")),
        ("docker ps --format '{{.Names}}'", ("docker", "ps", "--format", r"\{\{.Names\}\}")),
        ('echo "a\\"b \\n"', ("echo", 'a"b \\\\n')),
    ],
)
def test_a_pattern_is_cut_by_the_shells_rules(text: str, tokens: tuple[str, ...]) -> None:
    assert split_command_pattern(text) == tokens


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("git log | head", "shell syntax"),
        ("git log; id", "shell syntax"),
        ("git log && id", "shell syntax"),
        ("echo $(id)", "variables are not known"),
        ("echo `id`", "shell syntax"),
        ("echo $HOME", "variables are not known"),
        ('echo "$HOME"', "single quotes"),
        ("a\nb", "line break"),
        ("npm test > log", "shell syntax"),
        ("npm test # all", "shell syntax"),
        ("echo 'open", "no partner"),
        ('echo "open', "no partner"),
        ("git {status, diff}", "without blanks"),
    ],
)
def test_a_pattern_of_more_than_one_simple_command_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        split_command_pattern(text)


@pytest.mark.parametrize("tokens", [(), ("git", "**", "x"), ("**", "x")])
def test_a_rest_that_is_not_the_last_token_is_refused(tokens: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"last|empty"):
        parse_command_pattern(tokens)


def test_a_quoted_rest_is_text() -> None:
    pattern = parse_command_pattern(split_command_pattern("echo '**'"))
    assert (pattern.rest, pattern.tokens[1].spells("**"), pattern.tokens[1].matches("x")) == (False, True, False)


@pytest.mark.parametrize("text", ["", "1A", "A-B", "A=B", "{A,B}", "A B"])
def test_what_is_no_name_of_a_variable_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="environment variable"):
        parse_env_pattern(text)


def test_an_environment_pattern_matches_names_whole() -> None:
    pattern = parse_env_pattern("LC_*")
    assert [pattern.matches(name) for name in ("LC_ALL", "LC_", "XLC_ALL", "lc_all")] == [True, True, False, False]


@pytest.mark.parametrize("text", ["*", "**", "{,a}", ""])
def test_a_has_token_that_every_word_would_match_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"every word|no token"):
        parse_has_token(text)
