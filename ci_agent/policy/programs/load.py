"""Profiles from the data files: sections are found by their headers and read one at a time, on first use.

The files are TOML of the plainest kind, one `key = "text"` or `key = true` a line, and comments. A reader for that is
ready before `tomllib` is imported; a test holds the two against each other.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ci_agent.policy.programs.profile import (
    HAZARDS,
    SYNTAXES,
    Arity,
    Launch,
    Meaning,
    Operands,
    Option,
    Prints,
    Profile,
    Role,
)

FORMAT = 1
"""Each data file begins with `format = 1`."""

_DATA = Path(__file__).parent / "data"
_LINE = re.compile(r'([a-z_]+)(?:\.([a-z_]+|"[^"]+"))? = (?:"([^"\\]*)"|(true))(?: +#.*)?')
_MEANINGS = frozenset(get_args(Meaning)) - {"unlisted"}
_ROLES = frozenset(get_args(Role))
_ARITIES: tuple[Arity, ...] = get_args(Arity)
_SWITCHES = ("recurses", "numeric", "plus", "short_equals", "file_addresses", "bundled", "starts_shell")
_TEXTS = ("alone", "alone_recursive", "language")
_WORDS = (
    "instead",
    "only_unless",
    "picks",
    "passes_by",
    "leaves_out",
    "extensions",
    "lists",
    "globs",
    "dry",
    "delegates",
)
_OTHER_KEYS = (
    *("also", "syntax", "operands", "flags", "why", "uses", "everywhere"),
    *("only", "unlisted", "launches", "prints"),
)
_KEYS = frozenset({*_ARITIES, *_SWITCHES, *_TEXTS, *_WORDS, *_OTHER_KEYS})


class ProfileError(ValueError):
    """The data is wrong: a bug of this package."""


class _Index(NamedTuple):
    sections: Mapping[str, str]
    """Section name, `git stash list`, to its text."""
    names: Mapping[str, Mapping[str, str]]
    """Section name (or "" for programs) to the names directly under it, each with its section."""


@lru_cache(maxsize=512)
def find_profile(program: str) -> Profile | None:
    """The profile of a program by its base name; None when there is none."""
    section = _index().names[""].get(program)
    return None if section is None or section == "shared" else load_profile(section)


def program_names() -> tuple[str, ...]:
    return tuple(sorted(name for name in _index().names[""] if name != "shared"))


def section_names() -> tuple[str, ...]:
    """Every section of the data, also those of subcommands."""
    return tuple(_index().sections)


@cache
def load_profile(section: str) -> Profile:
    """Raise ProfileError when the section is not as it should be."""
    parent = _parent(section)
    try:
        inherited = load_profile(parent) if _reaches_everywhere(parent) else None
        profile = profile_from(section, _section(section), inherited)
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"profile {section!r}: {error}") from error
    commands = _index().names.get(section, {})
    return profile._replace(commands=commands, harmful=profile.harmful or bool(commands))


@cache
def _index() -> _Index:
    sections: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {"": {}}
    for path in sorted(_DATA.glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        for parts, also, body in split_sections(text, path.name):
            section = " ".join(parts)
            if section in sections:
                raise ProfileError(f"{path.name}: section {section!r} appears twice")
            sections[section] = body
            for name in (parts[-1], *also):
                siblings = names.setdefault(" ".join(parts[:-1]), {})
                if name in siblings:
                    raise ProfileError(f"{path.name}: {name!r} has two profiles")
                siblings[name] = section
    return _Index(sections, names)


def split_sections(text: str, file: str) -> Iterator[tuple[list[str], list[str], str]]:
    """Each section of a data file: the parts of its header, its other names, and its text."""
    if not text.startswith(f"format = {FORMAT}\n"):
        raise ProfileError(f"{file}: must begin with `format = {FORMAT}`")
    for section in text.split("\n[")[1:]:
        header, _, body = section.partition("]\n")
        also = ""
        if body.startswith('also = "'):
            first, _, body = body.partition("\n")
            also = first[len('also = "') : -1]
        yield _header_parts(header), also.split(), body


def _header_parts(header: str) -> list[str]:
    """`git.log` and `"json.tool"`, as TOML reads them."""
    if '"' not in header:
        return header.split(".")
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^".]+)', header)]


def _reaches_everywhere(section: str) -> bool:
    """The options of the section are those of its subcommands too."""
    return bool(section) and (bool(_section(section).get("everywhere")) or _reaches_everywhere(_parent(section)))


def _parent(section: str) -> str:
    return section.rpartition(" ")[0]


@cache
def _section(name: str) -> Mapping[str, Any]:
    return read_section(_index().sections[name])


def read_section(text: str) -> dict[str, Any]:
    """Raise ProfileError for anything but comments, blank lines and `key = "text"` or `key = true`."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ProfileError(f"not of the form key = value: {line}")
        key, subkey, value, _ = match.groups()
        target = found if subkey is None else found.setdefault(key, {})
        name = key if subkey is None else subkey.strip('"')
        if name in target:
            raise ProfileError(f"the key {name!r} appears twice")
        target[name] = True if value is None else value
    return found


def profile_from(name: str, data: Mapping[str, Any], inherited: Profile | None) -> Profile:
    unknown = data.keys() - _KEYS
    if unknown:
        raise ProfileError(f"unknown key {sorted(unknown)}")
    syntax = SYNTAXES[data.get("syntax", _inherited_syntax(name))]
    options = _all_options(data, inherited)
    starred = [option for name, option in options.items() if name.endswith("*")]
    if syntax.options and syntax.clusters and any(option.name[0] == "-" != option.name[1] for option in starred):
        raise ProfileError("a short option that ends in `*` would swallow the letters of a cluster")
    if data.get("short_equals") and not syntax.clusters:
        raise ProfileError("short_equals says nothing of a program whose short options make no clusters")
    operands = _operands(data.get("operands", "data..."))
    return Profile(
        name=name,
        syntax=syntax,
        options=options,
        long_names=tuple(sorted(name for name in options if name.startswith("--"))),
        prefixes=tuple(sorted(starred, key=lambda option: -len(option.name))),
        operands=operands,
        only=tuple(data.get("only", "").split()),
        unlisted=_one_of(data.get("unlisted", inherited.unlisted if inherited else "hazard"), ("hazard", "anything")),
        launches=_one_of(data.get("launches"), (None, *get_args(Launch))),
        prints=_one_of(data.get("prints"), (None, *get_args(Prints))),
        harmful=_is_harmful(data, options, operands),
        **_taken_as_written(data),
    )


def _taken_as_written(data: Mapping[str, Any]) -> dict[str, Any]:
    for key in _SWITCHES:
        _one_of(data.get(key), (None, True))
    words = {key: frozenset(data[key].split()) for key in _WORDS if key in data}
    return {key: data[key] for key in (*_SWITCHES, *_TEXTS) if key in data} | words


def _all_options(data: Mapping[str, Any], inherited: Profile | None) -> dict[str, Option]:
    """Its own before those of the groups that it uses, and these before those of the program that it belongs to."""
    options = _options(data)
    for group in data.get("uses", "").split():
        options = {**_options(_section(f"shared {group}")), **options}
    return options if inherited is None else {**inherited.options, **options}


def _is_harmful(data: Mapping[str, Any], options: Mapping[str, Option], operands: Operands) -> bool:
    return (
        bool({"language", "plus", "delegates"} & data.keys())
        or any(map(_matters, options.values()))
        or not {*operands.leading, *operands.trailing} <= {"data", "pattern", "read", "list"}
        or operands.repeated == "command"
    )


def _matters(option: Option) -> bool:
    return option.meaning not in ("data", "anything", "look")


def _inherited_syntax(name: str) -> str:
    """A subcommand reads its options as its program does, after the subcommand itself."""
    parent = _parent(name)
    if not parent:
        return "gnu"
    own: str = _section(parent).get("syntax", _inherited_syntax(parent))
    return own.removesuffix("_first")


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise ProfileError(f"{value!r} is not one of {allowed}")
    return value


def _options(data: Mapping[str, Any]) -> dict[str, Option]:
    reasons = data.get("why", {})
    options: dict[str, Option] = {}
    for arity, meaning, names in _declared(data):
        for name in names.split():
            if name in options or name[0] not in "-+":
                raise ProfileError(f"option {name!r} is listed twice, or is no option")
            options[name] = Option(name, arity, meaning, reasons.get(name, HAZARDS.get(meaning)))
    if reasons.keys() - options.keys():
        raise ProfileError(f"a reason for {sorted(reasons.keys() - options.keys())}, which is not listed")
    return options


def _declared(data: Mapping[str, Any]) -> Iterator[tuple[Arity, Meaning, str]]:
    yield "bare", "data", data.get("flags", "")
    for arity in _ARITIES:
        for meaning, names in data.get(arity, {}).items():
            if meaning not in _MEANINGS:
                raise ProfileError(f"{meaning!r} is no meaning of an option")
            yield arity, meaning, names


def _operands(text: str) -> Operands:
    words = text.split()
    repeats = [i for i, word in enumerate(words) if word.endswith("...")]
    names = [word.removesuffix("...") for word in words]
    if len(repeats) > 1 or not _ROLES.issuperset(names):
        raise ProfileError(f"operands {text!r} are not understood")
    roles: list[Role] = [role for role in names if role in _ROLES]  # type: ignore[misc]  # a set does not narrow
    if not repeats:
        return Operands(leading=tuple(roles))
    middle = repeats[0]
    return Operands(tuple(roles[:middle]), roles[middle], tuple(roles[middle + 1 :]))
