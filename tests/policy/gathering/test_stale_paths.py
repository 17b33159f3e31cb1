"""Links that a call brings into the workspace by unpacking, and then follows itself."""

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("src/a", "README.md", "build/x", "test/a"):
        put(name)
    return policy(
        """
        - id: any
          allow: bash
          command: "**"
          paths: [., "**", "**/.git/**", "**/.github/workflows/**"]
        - {id: w, allow: write}
        - {id: git, allow: bash, command: ["git {checkout,stash,apply,pull,clone,mv,switch,restore} **"]}
        - {id: more, allow: bash, command: ["{tar,unzip,patch,cpio,7z,rsync} **", "git reset --hard"], paths: [., "**"]}
        """
    )


@pytest.mark.parametrize(
    "command",
    [
        "tar xf a.tar -C build && cat build/l/key",
        "tar xf a.tar && cat < l/key",
        "unzip a.zip -d build; cat build/l",
        "cd build && tar xf ../a.tar && cat l/key",
        "cpio -id < a.cpio && cat l/key",
        "7z x a.7z && cat l/key",
        "patch -p1 < a.diff && cat src/a",
        "tar xf a.tar -C build && echo x > build/l/key",
        "tar xf a.tar -C build && grep -R x build",
        "git clone u r && cat r/l/key",
        "git checkout other && cat src/a",
        "git -C . checkout other && cat src/a",
        "git stash pop && cat < src/a",
        "git apply a.diff && head src/a",
        "git pull && grep -R x .",
        "gh pr checkout 1 && cat src/a",
        "hub checkout x && cat src/a",
        "glab mr checkout 1 && cat src/a",
        "svn up && cat src/a",
        "hg update x && cat src/a",
        "gh repo clone o/n r && cat r/l/key",
        "gh run download 1 && cat build/l/key",
        "unsquashfs a.sqsh && cat l/key",
        "git reset --hard && wc src/a",
        "git restore src/a && cat src/a",
        "git switch other && echo x > src/a",
        "git checkout status && cat src/a",
        "git switch list && cat src/a",
        "git checkout other -b new && cat src/a",
        "git checkout other -- --stat && cat src/a",
        "git stash apply list && cat src/a",
        "git checkout -b x $y && cat src/a",
        "git switch -c $y && cat src/a",
        'git switch -c "release/$(cat VERSION)" other && cat src/a',
        'git checkout "release/$(cat VERSION)" && cat src/a',
        "set -- x other; git switch -c $@; cat src/a",
        "find src -name a -exec git switch -c {} + && cat src/a",
        "ls src README.md | xargs git checkout -b; cat src/a",
        "git stash branch -b x && cat src/a",
    ],
)
def test_what_is_unpacked_is_not_used_in_the_same_call(decided: Policy, command: str) -> None:
    decision = decided.decide("bash", {"command": command})
    assert (decision.effect, decision.code) == ("deny", "unparsable"), decision
    assert "link in the same call" in decision.reason


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -b new && cat src/a",
        'git switch -c "release/$(cat VERSION)" && cat src/a',
        'git checkout -b "bot/update $(date +%F)" && cat src/a',
        "git checkout main && git add src/a && git diff -- src/a",
        "git checkout main && make test",
        "git checkout main && ruff check .",
        "git stash list && cat src/a",
        "git apply --check a.diff && cat src/a",
        "git clone u r && cat src/a",
        "git clone u r && cd r && npm ci",
        "git status && cat src/a",
        "tar cf a.tar src && cat src/a",
        "tar tf a.tar && cat src/a",
        "unzip -l a.zip && cat src/a",
        "tar xf a.tar -C build && cat src/a",
    ],
)
def test_what_unpacking_does_not_touch_is_known(decided: Policy, command: str) -> None:
    decision = decided.decide("bash", {"command": command})
    assert decision.effect == "allow", decision


def test_a_link_that_git_moves_is_not_used_in_the_same_call(decided: Policy, put: Put) -> None:
    (put("x").parent / "l").symlink_to("src")
    assert decided.decide("bash", {"command": "git mv l m && cat m/a"}).effect == "deny"
