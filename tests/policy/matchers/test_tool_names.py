import pytest

from ci_agent.policy.matchers.tool_names import parse_tool_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "covers"),
    [
        ("read", "read", True),
        ("read", "Read", False),
        ("read", "read_file", False),
        ("github__*", "github__create_issue", True),
        ("github__*", "github__evil__create_issue", False),
        ("github__*", "github__", False),
        ("github__create_*", "github__create_", False),
        ("*__read_file", "read_file", False),
        ("*__read_file", "fs__read_file", True),
        ("*__*", "fs__delete_file", True),
        ("*", "fs__delete_file", False),
        ("*", "read", True),
        ("github__{create_issue,list_issues}", "github__list_issues", True),
        ("{read,write}", "edit", False),
        ("github__*", "github___x", False),
        ("github___x", "github___x", True),
        ("github__*", "mcp__github__x", False),
    ],
)
def test_an_allow_pattern_covers_exactly_what_it_says(pattern: str, name: str, covers: bool) -> None:
    assert parse_tool_pattern(pattern).covers(name) is covers


@pytest.mark.parametrize(
    ("pattern", "name"), [("github__*", "github___x"), ("github___*", "github___x"), ("read", "read")]
)
def test_a_deny_pattern_means_a_name_that_can_be_cut_in_two_ways(pattern: str, name: str) -> None:
    assert parse_tool_pattern(pattern).may_mean(name)


@pytest.mark.parametrize("text", ["", "Bash(git:*)", "read file", "réad", "a\nb", "read\u200b"])
def test_what_no_tool_can_be_called_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        parse_tool_pattern(text)
