"""`has` of a deny rule: the word alone, in a cluster, with a value, cut short; in doubt it is there."""

import pytest
from policy_calls import MakePolicy

_FORCE = ("--force", "-f", "--force-with-lease", "--delete", "-d", "--mirror", "+*")


def _forbidden(policy: MakePolicy, command: str, token: str) -> bool:
    rules = (
        f'- {{id: any, allow: bash, command: "**"}}\n- {{id: forbidden, deny: bash, command: "**", has: "{token}"}}\n'
    )
    return policy(rules).decide("bash", {"command": command}).rule_id == "forbidden"


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("git push origin main", ""),
        ("git push origin main --force", "--force --force-with-lease"),
        ("git push -uf origin main", "-f"),
        ("git push -f", "-f"),
        ("git push --force-with-lease=main origin", "--force-with-lease"),
        ("git push --forc origin", "--force --force-with-lease"),
        ("git push origin +main", "+*"),
        ("git push -- origin --force", ""),
        ("git push -- origin +main", "+*"),
        ("git --no-pager push -df", "-f -d"),
        ("git push --mirror", "--mirror"),
    ],
)
def test_forced_pushes(policy: MakePolicy, command: str, there: str) -> None:
    assert [token for token in _FORCE if _forbidden(policy, command, token)] == there.split()


@pytest.mark.parametrize(
    ("command", "token", "expected"),
    [
        ("rm --recu build", "--recursive", True),
        ("rm build", "-r", False),
        ("rm build", "build", True),
        ("rm build/x", "build*", True),
        ("rm -- -r", "-r", False),
        ("sort -oout a", "-o", True),
        ("go test -run=x", "-run", True),
        ("go test --run=x", "-run", True),
        ("go test --run x", "-run", True),
        ("go test --runs x", "-run", False),
        ("npm publish --tag beta", "--tag", True),
        ("frobnicate -xf", "-f", True),
        ("frobnicate --force=1", "--force", True),
        ("frobnicate --forced", "--force", False),
    ],
)
def test_tokens_of_other_commands(policy: MakePolicy, command: str, token: str, expected: bool) -> None:
    assert _forbidden(policy, command, token) is expected


@pytest.mark.parametrize(
    ("command", "rule_id"),
    [
        ("git push -f", "git"),
        ("/usr/bin/git push --forc", "git"),
        ("GIT push -f", "git"),
        ("ls -f", "any"),
        ("make -f", "made"),
        ("remake x -f", "made"),
        ('git push "$x"', "git"),
        ("git push -- -f", "any"),
        ("git push x", "any"),
    ],
)
def test_of_many_rules_those_about_the_program_and_the_word_are_found(
    policy: MakePolicy, command: str, rule_id: str
) -> None:
    others = "".join(
        f'- {{id: other-{number}, deny: bash, command: "p{number} **", has: [-f, --force]}}\n' for number in range(300)
    )
    rules = """
- {id: any, allow: bash, command: "**"}
- {id: git, deny: bash, command: "git push **", has: [-f, --force]}
- {id: made, deny: bash, command: ["*make **"], has: -f}
"""
    assert policy(rules + others).decide("bash", {"command": command}).rule_id == rule_id
