import errno
import os
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.file.shipped import shipped_policy_names, shipped_policy_path
from ci_agent.policy.rules import Examples, Limits, PolicySource, PolicyTest, Rule

FULL = """\
policy: 1
description: >
  Everything that
  a file may say.
on_denied: fail
limits: {max_turns: 30, max_tool_calls: 200, max_tokens: 100000, max_cost_usd: 2.00, timeout_s: 900}
rules:
  - id: inspect
    allow: bash
    command: ["git {status,diff} **", [git, log, "--format=%h %s"], "echo 'a b' '*'"]
    paths: "**"
    env: [CI, LC_*]
    max_calls: 5
    on_denied: stop
    examples:
      match: [git status, {command: git diff}]
      no_match: git push
  - id: no-force
    deny: bash
    command: git push **
    has: [--force, -f]
    because: force
    instead: push
  - id: pages
    allow: fetch
    host: [docs.python.org, "*.example.com"]
    scheme: [https, HTTP]
    port: [443, 8443]
    method: head
  - id: issue
    allow: github__create_issue
    args: {repo: {enum: [acme/site]}, "labels[]": {regex: "[a-z]+"}}
    only: true
  - id: secrets
    deny: [read, write, edit]
    path: ["**/.env", "/etc/**"]
tests:
  - allow: {bash: git status}
  - deny: {read: {path: .env, limit: 3}}
    by: secrets
  - deny: {write: src/x}
    by: default
"""


def test_a_file_becomes_plain_data_with_places(tmp_path: Path) -> None:
    path = tmp_path / "ci.yml"
    path.write_text(FULL)
    source = load_policy_source(path)
    assert source == PolicySource(
        name=str(path),
        sha256=source.sha256,
        description="Everything that a file may say.",
        on_denied="fail",
        limits=Limits(max_turns=30, max_tool_calls=200, max_tokens=100_000, max_cost_usd=2.0, timeout_s=900),
        rules=(
            Rule(
                id="inspect",
                effect="allow",
                tools=("bash",),
                source=f"{path}:8",
                command=(
                    ("git", "{status,diff}", "**"),
                    ("git", "log", "--format=%h %s"),
                    ("echo", "a b", "\\*"),
                ),
                paths=("**",),
                env=("CI", "LC_*"),
                max_calls=5,
                on_denied="stop",
                examples=Examples(("git status", {"command": "git diff"}), ("git push",)),
            ),
            Rule(
                id="no-force",
                effect="deny",
                tools=("bash",),
                source=f"{path}:18",
                command=(("git", "push", "**"),),
                has=("--force", "-f"),
                because="force",
                instead="push",
            ),
            Rule(
                id="pages",
                effect="allow",
                tools=("fetch",),
                source=f"{path}:24",
                host=("docs.python.org", "*.example.com"),
                scheme=("https", "http"),
                port=(443, 8443),
                method=("HEAD",),
            ),
            Rule(
                id="issue",
                effect="allow",
                tools=("github__create_issue",),
                source=f"{path}:30",
                args={"repo": {"enum": ["acme/site"]}, "labels[]": {"regex": "[a-z]+"}},
                only=True,
            ),
            Rule(
                id="secrets",
                effect="deny",
                tools=("read", "write", "edit"),
                source=f"{path}:34",
                path=("**/.env", "/etc/**"),
            ),
        ),
        tests=(
            PolicyTest("allow", "bash", {"command": "git status"}, None, f"{path}:38"),
            PolicyTest("deny", "read", {"path": ".env", "limit": 3}, "secrets", f"{path}:39"),
            PolicyTest("deny", "write", {"path": "src/x", "content": ""}, "default", f"{path}:41"),
        ),
        files=(str(path),),
    )


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yml").write_text(f"policy: 1\n{text}")


def ids(source: PolicySource) -> list[str]:
    return [rule.id for rule in source.rules]


# Names and paths


def test_a_name_is_a_shipped_policy_even_when_a_file_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "read-only").write_text("policy: 1\nrules: [{id: evil, allow: bash, command: '**'}]")
    monkeypatch.chdir(tmp_path)
    source = load_policy_source("read-only")
    assert source.name == "read-only"
    assert source.files == (str(shipped_policy_path("read-only").resolve()),)
    assert source.rules[0].source.startswith("shipped/read-only.yml:")


def test_an_unknown_name_lists_the_shipped_ones_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_policy_source("reed-only")
    assert str(caught.value) == (
        'no shipped policy is called "reed-only": did you mean read-only? shipped are deny-all, edit-source, '
        "read-only, review, test-and-fix; a file is named by its path (./reed-only.yml)"
    )


def test_no_name_at_all_is_one_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_policy_source("")
    assert str(caught.value) == "no policy is named: give the name of a shipped policy, or a path"


@pytest.mark.parametrize("name", ["./team", "team.yml", "./", "/"])
def test_what_has_a_slash_or_a_suffix_is_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "team").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"^cannot read the policy '.*': (it is a folder|No such file or directory)$"
    ):
        load_policy_source(name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.yml")
    with pytest.raises(ConfigurationError) as caught:
        load_policy_source(tmp_path / "p.yml")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/p.yml': it is not a regular file"


def test_a_loop_of_links_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.yml").symlink_to("b.yml")
    (tmp_path / "b.yml").symlink_to("a.yml")
    with pytest.raises(ConfigurationError) as caught:
        load_policy_source(tmp_path / "a.yml")
    assert str(caught.value) == f"cannot read the policy '{tmp_path}/a.yml': {os.strerror(errno.ELOOP)}"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a\0b.yml", 'no policy is called "a\\u0000b.yml"'),
        ("a\nb", 'no policy is called "a\\nb"'),
        ("x/" * 3000, f"cannot read the policy '{'x/' * 2999}x': {os.strerror(errno.ENAMETOOLONG)}"),
        ("/dev/null", "cannot read the policy '/dev/null': it is not a regular file"),
    ],
)
def test_a_name_that_nothing_can_have_is_one_line(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_policy_source(name)
    assert str(caught.value) == problem


def test_an_error_names_the_file_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, p="extends: read-only\nlimts: {}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source("p.yml")
    assert str(caught.value) == 'p.yml:3:1: unknown key "limts": did you mean "limits"?'


# extends


def test_rules_of_a_base_come_first_and_carry_its_name(tmp_path: Path) -> None:
    write(tmp_path, team="rules: [{id: docs, allow: read, path: docs}]\ntests: [{allow: {read: docs}}]")
    write(tmp_path, mine="extends: [read-only, ./team.yml]\nrules: [{id: docs, deny: read, path: docs/x}]")
    source = load_policy_source(tmp_path / "mine.yml")
    assert ids(source) == ["read-only/look", "read-only/no-secrets", "team/docs", "docs"]
    assert source.rules[2].source == f"{tmp_path}/team.yml:2"
    assert source.tests == ()
    assert source.files == (
        f"{tmp_path}/mine.yml",
        str(shipped_policy_path("read-only").resolve()),
        f"{tmp_path}/team.yml",
    )


def test_a_base_is_found_beside_the_file_that_extends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policies").mkdir()
    write(tmp_path / "policies", base="rules: [{id: a, allow: read}]", mine="extends: base.yml")
    monkeypatch.chdir(tmp_path)
    source = load_policy_source("policies/mine.yml")
    assert (ids(source), source.rules[0].source) == (["base/a"], "policies/base.yml:2")


def test_a_base_that_is_reached_twice_counts_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        base="rules: [{id: a, allow: read}]",
        left="extends: base.yml\nrules: [{id: b, allow: ls}]",
        right="extends: ./base.yml\nrules: [{id: c, allow: find}]",
        top="extends: [left.yml, right.yml]",
    )
    assert ids(load_policy_source(tmp_path / "top.yml")) == ["base/a", "left/b", "right/c"]


def test_the_tightest_limits_and_the_strictest_reaction_count(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="extends: read-only\non_denied: stop\nlimits: {max_turns: 9, timeout_s: 60}",
        b="extends: read-only\nlimits: {max_turns: 5, max_cost_usd: 1}",
        top="extends: [a.yml, b.yml]\non_denied: fail\nlimits: {max_turns: 7, timeout_s: 90}",
    )
    source = load_policy_source(tmp_path / "top.yml")
    assert source.on_denied == "stop"
    assert source.limits == Limits(max_turns=5, max_cost_usd=1, timeout_s=60)


def test_a_cycle_is_named(tmp_path: Path) -> None:
    write(tmp_path, a="extends: b.yml", b="extends: ./c.yml", c="extends: a.yml")
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(tmp_path / "a.yml")
    chain = f"{tmp_path}/a.yml extends b.yml extends ./c.yml extends a.yml"
    assert str(caught.value) == f"{tmp_path}/c.yml:2:10: a policy cannot extend itself: {chain}"


def test_a_cycle_through_a_link_is_a_cycle(tmp_path: Path) -> None:
    write(tmp_path, a="extends: b.yml")
    (tmp_path / "b.yml").symlink_to("a.yml")
    with pytest.raises(InvalidFileError, match="a policy cannot extend itself"):
        load_policy_source(tmp_path / "a.yml")


def test_a_chain_of_bases_has_an_end(tmp_path: Path) -> None:
    write(tmp_path, **{f"p{number}": f"extends: p{number + 1}.yml" for number in range(200)})
    with pytest.raises(InvalidFileError, match=r"p100\.yml:2:10: more than 100 policies extend one another$"):
        load_policy_source(tmp_path / "p0.yml")


def test_a_base_that_is_not_there_is_an_error_at_its_entry(tmp_path: Path) -> None:
    write(tmp_path, mine="extends:\n  - read-only\n  - ./team.yml")
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(tmp_path / "mine.yml")
    assert str(caught.value) == (
        f"{tmp_path}/mine.yml:4:5: cannot read the policy '{tmp_path}/team.yml': No such file or directory"
    )


def test_what_is_wrong_in_a_base_is_said_with_the_name_of_the_base(tmp_path: Path) -> None:
    write(tmp_path, base="rules: [{id: a, allow: raed}]", mine="extends: base.yml")
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(tmp_path / "mine.yml")
    assert str(caught.value) == f'{tmp_path}/base.yml:2:24: no tool is called "raed": did you mean read?'


def test_two_bases_of_one_name_would_mix_their_ids(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    write(tmp_path, base="rules: [{id: a, allow: read}]", mine="extends: [base.yml, x/base.yml]")
    write(tmp_path / "x", base="rules: [{id: a, allow: ls}]")
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(tmp_path / "mine.yml")
    assert str(caught.value) == (
        f"{tmp_path}/mine.yml:2:21: '{tmp_path}/base.yml' is extended too, "
        "and rules of both would be called base/...: rename one file"
    )


def test_text_extends_shipped_policies_and_absolute_paths_only(tmp_path: Path) -> None:
    write(tmp_path, base="rules: [{id: a, allow: read}]")
    source = load_policy_source(text=f"policy: 1\nextends: [deny-all, {tmp_path}/base.yml]")
    assert (source.name, ids(source)) == ("<text>", ["deny-all/no-tool", "base/a"])
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(text="policy: 1\nextends: ./base.yml")
    assert str(caught.value) == (
        "<text>:2:10: a policy given as text has no folder: extend shipped policies or absolute paths"
    )


# Digest and pin


def test_the_digest_depends_on_the_rules_and_not_on_comments_layout_or_order() -> None:
    first = load_policy_source(text="policy: 1\nrules:\n  - {id: b, deny: ls}\n  - {id: a, allow: read, path: src}\n")
    second = load_policy_source(
        text="# a comment\npolicy: 1\ndescription: x\nrules:\n- id: a\n  path: [src]\n  allow: [read]\n  only: false\n"
        "- {id: b, deny: ls}\n"
        "tests: [{allow: {read: src}}]\n"
    )
    assert first.sha256 == second.sha256
    assert len(first.sha256) == 64


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{id: a, allow: read, path: lib}]",
        "rules: [{id: b, allow: read, path: src}]",
        "rules: [{id: a, deny: read, path: src}]",
        "rules: [{id: a, allow: read, path: src, max_calls: 1}]",
        "rules: [{id: a, allow: read, path: src}]\non_denied: stop",
        "rules: [{id: a, allow: read, path: src}]\nlimits: {max_turns: 1}",
        "rules: [{id: a, allow: read, path: src}]\nextends: deny-all",
    ],
)
def test_the_digest_depends_on_everything_that_decides(text: str) -> None:
    first = load_policy_source(text="policy: 1\nrules: [{id: a, allow: read, path: src}]")
    assert load_policy_source(text=f"policy: 1\n{text}").sha256 != first.sha256


def test_a_pinned_base_is_accepted_in_the_version_that_is_pinned_and_in_no_other() -> None:
    digest = load_policy_source("read-only").sha256
    pinned = load_policy_source(text=f"policy: 1\nextends: read-only@sha256:{digest}")
    assert ids(pinned) == ["read-only/look", "read-only/no-secrets"]
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(text=f"policy: 1\nextends: read-only@sha256:{'0' * 64}")
    assert str(caught.value) == (
        "<text>:2:10: read-only is not the version that is pinned: "
        f"if its change is wanted, write read-only@sha256:{digest}"
    )


def test_a_pin_that_is_cut_off_is_no_pin() -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(text="policy: 1\nextends: read-only@sha256:0123")
    assert str(caught.value) == (
        "<text>:2:10: a pin is written @sha256: and 64 hexadecimal digits, as `policy check --format json` prints them"
    )


# Tools


def test_a_tool_of_a_server_is_taken_on_trust_while_no_server_is_configured() -> None:
    text = "policy: 1\nrules: [{id: a, allow: [github__search, 'gitlab__*']}]"
    assert load_policy_source(text=text).rules[0].tools == ("github__search", "gitlab__*")


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("github__serach", 'no tool is called "github__serach": did you mean github__search?'),
        ("gitlab__*", 'no tool matches "gitlab__*": the tools are github__search, read'),
        ("github__{search,get}", 'no tool is called "github__get": did you mean github__search?'),
    ],
)
def test_a_tool_of_a_server_must_exist_once_servers_are_configured(tool: str, problem: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(
            text=f"policy: 1\nrules: [{{id: a, allow: '{tool}'}}]", known_tools=["read", "github__search"]
        )
    assert str(caught.value) == f"<text>:2:24: {problem}"


@pytest.mark.parametrize("name", shipped_policy_names())
def test_every_shipped_policy_loads_and_tests_itself_twenty_times(name: str) -> None:
    source = load_policy_source(name)
    assert source.description
    assert len(source.tests) >= (10 if name == "deny-all" else 20)


def test_the_shipped_policies_are_these() -> None:
    assert shipped_policy_names() == ["deny-all", "edit-source", "read-only", "review", "test-and-fix"]


def test_several_tools_in_one_text_are_shown_as_a_list() -> None:
    with pytest.raises(InvalidFileError) as error:
        load_policy_source(text='policy: 1\nrules: [{id: a, allow: "read, write"}]\n')
    assert '"read, write": to name several tools, write a list: [read, write]' in str(error.value)


def test_a_folder_is_no_policy() -> None:
    with pytest.raises(ConfigurationError, match=r'^"\." is a folder: name a policy file in it$'):
        shipped_policy_path(".")
