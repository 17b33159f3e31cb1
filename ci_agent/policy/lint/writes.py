"""What may be written although it decides what runs."""

from collections.abc import Iterator, Sequence
from typing import Final

from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.lint.finding import LintFinding, Subject, Witness, is_own, warning
from ci_agent.policy.lint.samples import command_call, command_patterns, sample_words
from ci_agent.policy.rules import Rule
from ci_agent.strict_yaml import quote

_REPOSITORY_FILES: Final = (
    (".git/hooks/pre-commit", "git runs it"),
    (".git/config", "git takes commands from it"),
    (".github/workflows/ci.yml", "CI runs it"),
)

_INTERPRETERS: Final = frozenset({"sh", "bash", "python", "python3", "node", "perl", "ruby", "php", "deno", "bun"})

_JAVASCRIPT: Final = ("package.json", "src/x.test.js", "test/x.js", "tests/x.js", "packages/x/package.json")
_PYTHON: Final = ("conftest.py", "tests/conftest.py", "tests/test_x.py", "test_x.py", "src/test_x.py")

_CODE_OF: Final[Sequence[tuple[str, Sequence[str]]]] = (
    *((program, _JAVASCRIPT) for program in ("npm", "pnpm", "yarn", "bun", "npx jest", "npx vitest", "node --test")),
    *((program, _PYTHON) for program in ("pytest", "python -m pytest", "python3 -m pytest", "tox", "nox", "uv run")),
    *((f"{python} -m unittest", ("test_x.py", "tests/test_x.py")) for python in ("python", "python3")),
    ("make", ("Makefile",)),
    ("just", ("justfile",)),
    ("go test", ("x_test.go", "pkg/x_test.go", "internal/x_test.go")),
    ("go run", ("main.go", "cmd/x/main.go")),
    ("go generate", ("main.go", "pkg/x.go")),
    *((f"cargo {command}", ("src/lib.rs", "src/main.rs", "tests/x.rs")) for command in ("test", "run", "bench")),
    *((f"cargo {command}", ("build.rs", "crates/x/build.rs")) for command in ("build", "check", "clippy", "doc")),
    *((program, ("build.gradle", "src/test/java/X.java")) for program in ("gradle", "./gradlew")),
    *((program, ("pom.xml", "src/test/java/X.java")) for program in ("mvn", "./mvnw")),
    *((program, ("Rakefile", "spec/x_spec.rb", "lib/x.rb")) for program in ("rake", "rspec", "bundle exec")),
)
"""Beginnings of commands, and files whose code such a command runs, the telling ones first."""


def find_dangerous_writes(subject: Subject) -> Iterator[LintFinding]:
    yield from _writes_repository(subject)
    yield from _edits_what_runs(subject)


def _writes_repository(subject: Subject) -> Iterator[LintFinding]:
    seen = set()
    for path, why in _REPOSITORY_FILES:
        witness, rule = _writable(subject, path)
        if witness and rule and is_own(rule) and (rule.id, path[:5]) not in seen:
            seen.add((rule.id, path[:5]))
            yield warning("writes-repository", rule, f"grants writing {path}, and {why}", witness)


def _edits_what_runs(subject: Subject) -> Iterator[LintFinding]:
    """One finding for each rule that grants commands, at the rule of this file that makes the pair complete."""
    for running in subject.source.rules:
        finding = next(_pairs(subject, running), None)
        if finding:
            yield finding


def _pairs(subject: Subject, running: Rule) -> Iterator[LintFinding]:
    for words in _granted_commands(subject, running):
        for path in _code_of(words):
            witness, writing = _writable(subject, path)
            rule = next((rule for rule in (running, writing) if rule and is_own(rule)), None)
            if witness and writing and rule:
                yield warning("edits-what-runs", rule, _message(running, writing, words, path), witness)


def _message(running: Rule, writing: Rule, words: Sequence[str], path: str) -> str:
    return (
        f"{quote(' '.join(words))}, which {running.id} grants, runs code from {path}, which {writing.id} lets "
        "the agent write: together they let it run anything"
    )


def _granted_commands(subject: Subject, rule: Rule) -> Iterator[list[str]]:
    if rule.effect == "allow":
        for pattern in command_patterns(rule):
            words = sample_words(pattern)
            if words and any(_code_of(words)) and subject.allows(command_call(words)):
                yield words


def _code_of(words: Sequence[str]) -> Iterator[str]:
    line = " ".join(words) + " "
    for beginning, files in _CODE_OF:
        if line.startswith(beginning + " "):
            yield from files
    # A program that is named by a path in the workspace, and a script that an interpreter is given.
    yield from (
        word for word in words[:2] if _is_relative_path(word) and (word == words[0] or words[0] in _INTERPRETERS)
    )


def _is_relative_path(word: str) -> bool:
    return not word.startswith(("/", "-", "~")) and ("/" in word or "." in word)


def _writable(subject: Subject, path: str) -> tuple[Witness | None, Rule | None]:
    """The call that writes the file, and the rule that grants it."""
    for tool in ("write", "edit"):
        arguments = expand_call(tool, path)
        decision = subject.decide(tool, arguments)
        if decision.effect == "allow":
            return Witness(tool, arguments), subject.rule(decision.rule_id)
    return None, None
