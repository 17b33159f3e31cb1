"""Whether a command carries a token of a deny rule: alone, in a cluster, with a value, cut short; never as a value."""

from collections.abc import Callable

import pytest

from ci_agent.policy.programs.carries import carries
from ci_agent.policy.words import Word

ReadWords = Callable[[str], tuple[Word, ...]]

_FORCE = ("--force", "-f", "--force-with-lease", "--delete", "-d", "--mirror", "+*")


@pytest.mark.parametrize(
    ("line", "carried"),
    [
        ("git push origin main", ""),
        ("git push origin main --force", "--force"),
        ("git push --force", "--force"),
        ("git push -uf origin main", "-f"),
        ("git push -f", "-f"),
        ("git push --force-with-lease=main origin", "--force-with-lease"),
        ("git push --forc origin", "--force --force-with-lease"),
        ("git push origin +main", "+*"),
        ("git push -- origin main", ""),
        ("git push -- origin --force", ""),
        ("git push -- origin +main", "+*"),
        ("git -C packages/app push --force", "--force"),
        ("git --no-pager push -df", "-f -d"),
        ("git push -o --force origin", ""),
        ("git push --push-option=-f origin", ""),
        ("git push origin ⟨main|+main⟩", "+*"),
        ("git push origin «$branch»", "--force -f --force-with-lease --delete -d --mirror +*"),
        ("git push -- origin «$branch»", "+*"),
        ("git push -- origin x«$branch»", ""),
        ("git push origin «$all»…", "--force -f --force-with-lease --delete -d --mirror +*"),
        ("git push --mirror", "--mirror"),
        ("git push -xf", "-f"),
    ],
)
def test_forced_pushes(line: str, carried: str, read_words: ReadWords) -> None:
    words = read_words(line)
    assert [token for token in _FORCE if carries(words, token)] == carried.split()


@pytest.mark.parametrize(
    ("line", "token", "expected"),
    [
        ("rm -rf build", "-r", True),
        ("rm -rf build", "-f", True),
        ("rm -rf build", "-rf", False),
        ("rm --recursive build", "--recursive", True),
        ("rm --recu build", "--recursive", True),
        ("rm build", "-r", False),
        ("rm build", "build", True),
        ("rm build/x", "build*", True),
        ("rm -- -r", "-r", False),
        ("rm -- -r", "--", True),
        ("rm -r", "--", False),
        ("rm ⟨*⟩", "-r", True),
        ("rm ⟨src/*⟩", "-r", False),
        ("sort -k -o a", "-o", False),
        ("sort -oout a", "-o", True),
        ("go test -run=x", "-run", True),
        ("go test --run x", "-run", True),
        ("docker run -it --rm x --privileged", "--privileged", False),
        ("docker run --privileged x", "--privileged", True),
        ("npm publish --tag beta", "--tag", True),
        ("npm publish --tag --access", "--access", False),
        ("frobnicate -xf", "-f", True),
        ("frobnicate --force=1", "--force", True),
        ("frobnicate --forced", "--force", False),
        ("frobnicate «$x»", "--force", True),
        ("frobnicate x«$x»", "--force", False),
        ("./tool -v --f*", "--f*", True),
    ],
)
def test_tokens_of_other_commands(line: str, token: str, expected: bool, read_words: ReadWords) -> None:
    assert carries(read_words(line), token) is expected
