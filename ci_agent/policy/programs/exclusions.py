"""What exclusions among git's pathspecs leave out for certain: `:!docs`, `:(exclude)*.lock`.

The expressions take linear time: each text between two stars is looked for once, at its first place (`(?=(..))` and the
group again, which nothing goes back into).
"""

import re
from typing import Final

from ci_agent.policy.effects import Exclusion
from ci_agent.policy.programs.parsed import Parsed

_FORM: Final = re.compile(
    r":(?:\((?P<long>[a-z,]+)\)|(?P<short>[!^/]+)(?::|(?=[\w.*?])(?!_)))(?P<path>[^\[\]\\\0]+)", re.ASCII
)
"""Behind the short form, other characters may be further magic, unless a colon ends it."""

_MAX_STARS: Final = 4
_MAX_BYTES: Final = 1_000

_MAGIC: Final = {"!": "exclude", "^": "exclude", "/": "top"}
_KNOWN: Final = frozenset({"exclude", "top", "literal", "glob"})
_STARS: Final = re.compile(r"\*+")
_MAY_BE_OBJECT: Final = re.compile(r"(?:.*-g)?[0-9A-Fa-f]{4,64}(?:\^\{\w*\})*|.*:.*", re.DOTALL)


def exclusions(parsed: Parsed) -> tuple[Exclusion, ...]:
    """Those behind a `--`, where what stands before it is commits: to what a file held, no path applies."""
    end = parsed.dash_dash
    if (
        end is None
        or parsed.has("--full-diff", "--stdin")
        or not any(operand.word.text.startswith(":") for operand in parsed.operands)
    ):
        return ()
    pattern = "pattern" in parsed.profile.operands.leading and not parsed.has(*parsed.profile.instead)
    before = [operand.word for operand in parsed.operands[pattern:] if operand.at < end]
    texts = [text for word in before for text in (word.stand_ins or (word.literal or ":",)) if text]
    if any(len(text) != 40 and _MAY_BE_OBJECT.fullmatch(text) for text in texts):
        return ()
    found = [read_exclusion(operand.word.literal or "") for operand in parsed.operands if operand.at > end]
    return tuple(each for each in found if each is not None)


def read_exclusion(text: str) -> Exclusion | None:
    """None for what is none, and where it is not certain what it leaves out."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    magic = set(match["long"].split(",")) if match["long"] else {_MAGIC[char] for char in match["short"]}
    path = match["path"] if "top" in magic else match["path"].removeprefix("./")
    if (
        "exclude" not in magic
        or not magic <= _KNOWN
        or not {"", ".", ".."}.isdisjoint(path.removesuffix("/").split("/"))
    ):
        return None
    pattern = _pattern(path, magic)
    return None if pattern is None else Exclusion(pattern, "top" in magic)


def _pattern(path: str, magic: set[str]) -> str | None:
    if "literal" in magic or not re.search(r"[*?]", path):
        return re.escape(path) + ("." if path.endswith("/") else "(?:/.*)?") + "*" * path.endswith("/")
    if path.endswith("/") or len(path) > _MAX_BYTES:
        return None
    return _of_names(path) if "glob" in magic else _of_text(path)


def _of_text(path: str) -> str | None:
    """Here `*` matches slashes too."""
    first, *between, last = [_plain(text, "[\\x00-\\x7f]") for text in _STARS.split(path)] + [""] * ("*" not in path)
    if len(between) >= _MAX_STARS:
        return None
    found = [f"(?=(?P<g{at}>.*?{text}))(?P=g{at})" for at, text in enumerate(between) if text]
    return first + "".join(found) + (".*" if "*" in path else "") + last


def _plain(text: str, one: str) -> str:
    return one.join(map(re.escape, text.split("?")))


def _of_names(path: str) -> str | None:
    """`**/` is any folders, `/**` all beneath, `*` stays within a name."""
    parts: list[str] = []
    names = path.split("/")
    if names.count("**") > _MAX_STARS // 2 or any(len(_STARS.findall(name)) > 1 for name in names):
        return None
    for at, name in enumerate(names):
        if name == "**":
            parts.append(".*" if at == len(names) - 1 else "(?:.*/)?")
        elif "**" in name:
            return None
        else:
            text = "[^/]*".join(_plain(part, "[\\x00-\\x2e\\x30-\\x7f]") for part in name.split("*"))
            parts.append(text + "/" * (at < len(names) - 1))
    return "".join(parts)
