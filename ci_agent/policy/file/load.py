"""A policy by name, path or text becomes a `PolicySource`: read strictly, checked, with all that it extends."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.git_files import beside, is_git_name, path_in, read_named_file
from ci_agent.policy.file.build import Base, build_policy, extend
from ci_agent.policy.file.calls import BUILTIN_TOOLS
from ci_agent.policy.file.consistency import check_document, check_references
from ci_agent.policy.file.document import PolicyDocument
from ci_agent.policy.file.shipped import shipped_policy_path
from ci_agent.policy.rules import PolicySource
from ci_agent.strict_yaml import Place, YamlDocument, load_yaml, quote, raise_problems, validate
from ci_agent.workspace import real_path

TEXT_NAME: Final = "<text>"
"""What messages call a policy that was given as text."""

MAX_FILES: Final = 100
"""How many files one policy may be made of."""

_PIN: Final = re.compile(r"(.+)@sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a policy comes from."""

    name: str
    """As it was given; for messages and for `PolicySource.name`."""
    label: str
    """What comes before `:line`."""
    path: Path | None
    """None: given as text."""
    is_in_git: bool = False
    """It is a file of a revision, which `label` names; the path is relative to the repository's top."""

    @property
    def identity(self) -> Path | None:
        """The same for all names of a file; None: given as text."""
        if self.path is None or self.is_in_git:
            return self.path and Path(self.label)
        return real_path(self.path)


@dataclass(frozen=True, slots=True)
class _Loading:
    """What one call of `load_policy_source` has come to know. A file that is extended twice is read once."""

    known_tools: frozenset[str]
    sources: dict[Path, PolicySource] = field(default_factory=dict)
    files_by_prefix: dict[str, Path] = field(default_factory=dict)


_Chain: TypeAlias = tuple[_Origin, ...]
"""The policies that are being read, each extending the next."""


def load_policy_source(
    name_or_path: str | Path | None = None,
    *,
    text: str | None = None,
    known_tools: Collection[str] = BUILTIN_TOOLS,
) -> PolicySource:
    """Read a policy: a shipped one by its name, a file by a path with a slash or a suffix, or `text`.

    `known_tools`: names of all tools that are configured. Raises ConfigurationError for what cannot be found or read,
    InvalidFileError for what is wrong in a file, each problem with its place and what to write instead.
    """
    loading = _Loading(frozenset(known_tools))
    if text is not None:
        return _build(load_yaml(text, TEXT_NAME, model=PolicyDocument), (_Origin(TEXT_NAME, TEXT_NAME, None),), loading)
    if not name_or_path:
        raise ConfigurationError("no policy is named: give the name of a shipped policy, or a path")
    return _read((_find(str(name_or_path), None),), loading)


def is_file_name(name: str) -> bool:
    """Whether a policy is named by its file: by a path with a slash or a suffix, or by `git:REV:PATH`."""
    return is_git_name(name) or "/" in name or Path(name).suffix != ""


def _find(name: str, extending: _Origin | None) -> _Origin:
    if not name.isprintable():
        raise ConfigurationError(f"no policy is called {quote(name)}")
    if is_file_name(name):
        label = name if extending is None or extending.path is None else beside(extending.label, name)
        return _Origin(name, label, path_in(label), is_in_git=is_git_name(label))
    return _Origin(name, f"shipped/{name}.yml", shipped_policy_path(name))


def _read(chain: _Chain, loading: _Loading) -> PolicySource:
    origin = chain[-1]
    file = _identity(origin)
    if file not in loading.sources:
        text = read_named_file(origin.label if origin.is_in_git else _path(origin), "policy")
        loading.sources[file] = _build(load_yaml(text, origin.label, model=PolicyDocument), chain, loading)
    return loading.sources[file]


def _build(document: YamlDocument, chain: _Chain, loading: _Loading) -> PolicySource:
    model = validate(document, PolicyDocument)
    raise_problems(document.file, list(check_document(document, model, loading.known_tools)))
    bases = _read_bases(document, model.extends or [], chain, loading)
    own = build_policy(document, model, chain[-1].name, None if chain[-1].is_in_git else chain[-1].path)
    try:
        source = extend(own, bases)
    except ValueError as error:
        raise document.error(("proposals",) if model.proposals else ("extends",), str(error)) from error
    raise_problems(document.file, list(check_references(document, model, source)))
    return source


def _read_bases(document: YamlDocument, entries: Sequence[str], chain: _Chain, loading: _Loading) -> list[Base]:
    """The policies that `extends` names; what is wrong with its entries themselves is said at their places."""
    bases: list[Base] = []
    problems: list[tuple[Place, str]] = []
    for index, entry in enumerate(entries):
        try:
            bases.append(_read_base(entry, chain, loading))
        except InvalidFileError:
            if not problems:
                raise
        except ConfigurationError as error:
            problems.append((document.place(("extends", index)), str(error)))
    raise_problems(document.file, problems)
    return bases


def _read_base(entry: str, chain: _Chain, loading: _Loading) -> Base:
    name, pin = _split_pin(entry)
    _refuse_path_beside_text(chain[-1], name)
    base = _find(name, chain[-1])
    _refuse_cycle(chain, base)
    _claim_prefix(base, loading)
    source = _read((*chain, base), loading)
    _check_pin(name, source, pin)
    return Base(_path(base).stem, source)


def _split_pin(entry: str) -> tuple[str, str | None]:
    match = _PIN.fullmatch(entry)
    if match:
        return match[1], match[2]
    if "@sha256" in entry:
        raise ConfigurationError(
            "a pin is written @sha256: and 64 hexadecimal digits, as `policy check --format json` prints them"
        )
    return entry, None


def _refuse_path_beside_text(extending: _Origin, name: str) -> None:
    if extending.path is None and "/" in name and not name.startswith("/") and not is_git_name(name):
        raise ConfigurationError("a policy given as text has no folder: extend shipped policies or absolute paths")


def _refuse_cycle(chain: _Chain, base: _Origin) -> None:
    if base.identity in [origin.identity for origin in chain if origin.path]:
        names = " extends ".join(origin.name for origin in (*chain, base))
        raise ConfigurationError(f"a policy cannot extend itself: {names}")
    if len(chain) > MAX_FILES:
        raise ConfigurationError(f"more than {MAX_FILES} policies extend one another")


def _claim_prefix(base: _Origin, loading: _Loading) -> None:
    path, file = _path(base), _identity(base)
    other = loading.files_by_prefix.setdefault(path.stem, file)
    if other != file:
        raise ConfigurationError(
            f"{str(other)!r} is extended too, and rules of both would be called {path.stem}/...: rename one file"
        )


def _check_pin(name: str, source: PolicySource, pin: str | None) -> None:
    if pin not in (None, source.sha256):
        raise ConfigurationError(
            f"{name} is not the version that is pinned: if its change is wanted, write {name}@sha256:{source.sha256}"
        )


def _identity(origin: _Origin) -> Path:
    return origin.identity or _path(origin)


def _path(origin: _Origin) -> Path:
    if origin.path is None:
        raise ConfigurationError("a policy given as text has no path")
    return origin.path
