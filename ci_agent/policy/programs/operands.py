"""Gives each operand its role, and adds what the role means."""

from collections.abc import Mapping, Sequence

from ci_agent.policy.effects import FileEffect, UrlUse
from ci_agent.policy.programs.copies import use_target
from ci_agent.policy.programs.draft import (
    CODE_FROM_INPUT,
    Draft,
    is_standard_input,
    is_url,
    reaches_no_file,
    use_anything,
    use_source,
)
from ci_agent.policy.programs.packages import use_go_package, use_package
from ci_agent.policy.programs.parsed import Found, Operand, Parsed
from ci_agent.policy.programs.pathspecs import use_revision
from ci_agent.policy.programs.profile import HAZARDS, Role
from ci_agent.policy.programs.selections import selection_for
from ci_agent.policy.words import Word, literal_word

_FILE_EFFECTS: Mapping[Role, tuple[FileEffect, ...]] = {
    "list": ("list",),
    "read": ("read",),
    "program": ("read",),
    "load": ("read",),
    "write": ("write",),
    "out": ("write",),
    "delete": ("delete",),
    "move": ("read", "delete"),
    "rewrite": ("read", "write"),
}

_NOTHING_MORE: frozenset[Role] = frozenset(("data", "pattern", "list", "read", "write", "delete", "move", "rewrite"))
"""Roles that mean nothing beyond the file that they name, if any."""

_HAZARDS: Mapping[Role, str] = {
    "out": HAZARDS["write"],
    "load": "runs the commands in the file",
    "config": HAZARDS["config"],
    "code": HAZARDS["code"],
}


def apply_operands(parsed: Parsed, draft: Draft) -> None:
    meanings = {found.option.meaning for found in parsed.options}
    recursive = parsed.profile.recurses or ("recursive" in meanings and any(map(_recurses, parsed.options)))
    assigned = _assign(parsed, recursive, "target" in meanings)
    sources = [operand.word for role, operand in assigned if role in ("read", "move")]
    if "target" in meanings:
        _use_targets(parsed, draft, sources, recursive)
    if not assigned:
        return
    dry = parsed.dry
    reads: Role = "list" if parsed.surely(*parsed.profile.lists) else "rewrite" if "in_place" in meanings else "read"
    selection = selection_for(parsed)
    for role, operand in assigned:
        if role == "command":
            draft.run([following.word for following in parsed.operands if following.at >= operand.at])
            return
        if role == "write" and sources and not dry:
            use_target(parsed, draft, operand.word, sources, recursive)
            continue
        changed = reads if role == "read" else role
        for effect in _FILE_EFFECTS.get(changed, ()):
            if dry and effect in ("write", "delete"):
                continue
            # Moving a folder takes it as it is.
            beneath = recursive and (changed != "move" or effect == "read")
            in_place = beneath and changed == "rewrite" and effect == "write"
            draft.use(effect, operand.word, beneath, selection=selection, in_place=in_place)
        if changed != role:
            use_backup(parsed, draft, operand.word)
        if changed not in _NOTHING_MORE:
            _apply_role(changed, operand, parsed, draft)


def _use_targets(parsed: Parsed, draft: Draft, sources: Sequence[Word], recursive: bool) -> None:
    for found in parsed.options:
        if found.option.meaning == "target" and found.value is not None:
            use_target(parsed, draft, found.value, sources, recursive)


def use_backup(parsed: Parsed, draft: Draft, word: Word) -> None:
    """`sed -i.bak` keeps what was there. A `*` in the suffix stands for the path to sed, for the name to perl."""
    for found in parsed.options:
        suffix = found.value.literal if found.option.meaning == "in_place" and found.value else None
        if not suffix or word.literal is None:
            continue
        folder, slash, name = word.text.rpartition("/")
        paths = [suffix.replace("*", word.text), folder + slash + suffix.replace("*", name)]
        for path in dict.fromkeys(paths if "*" in suffix else [word.text + suffix]):
            draft.use("write", literal_word(path, word.span))


def _recurses(found: Found) -> bool:
    """Also `grep -d recurse`, whose other values are these."""
    asked = found.option.meaning == "recursive"
    return asked and (found.value is None or found.value.literal not in ("read", "skip"))


def _assign(parsed: Parsed, recursive: bool, has_target: bool) -> list[tuple[Role, Operand]]:
    profile, operands = parsed.profile, parsed.operands
    leading, trailing = profile.operands.leading, profile.operands.trailing
    if leading and parsed.has(*profile.instead):
        leading = leading[1:]
    if has_target:
        trailing = ()
    middle = profile.operands.repeated or "anything"
    alone = profile.alone or (profile.alone_recursive if recursive else None)
    if len(operands) <= len(leading):
        given = list(zip(leading, operands, strict=False)) if operands else []
        return given if alone is None else [(middle, Operand(literal_word(alone), -1)), *given]
    between = max(len(operands) - len(leading) - len(trailing), 1)
    return list(zip((*leading, *[middle] * between, *trailing), operands, strict=False))


def _use_code(draft: Draft, operand: Operand) -> None:
    if is_standard_input(operand.word):
        draft.hazard(operand.at, CODE_FROM_INPUT)
    draft.code.append((operand.at, 0))
    if is_url(operand.word):
        draft.urls.append(UrlUse(operand.word))


def _apply_role(role: Role, operand: Operand, parsed: Parsed, draft: Draft) -> None:
    """What a role means beyond the file that it names."""
    if role in _HAZARDS and not (role == "out" and reaches_no_file(operand.word)):
        draft.hazard(operand.at, _HAZARDS[role])
    if role in ("anything", "config", "code"):
        use_anything(draft, operand.word)
    elif role in ("program", "load"):
        _use_code(draft, operand)
    elif role == "source":
        use_source(draft, operand.word)
    elif role in ("package", "node_package"):
        use_package(draft, operand.word, node=role == "node_package")
    elif role == "go_package":
        use_go_package(draft, operand.word, fetches=parsed.profile.name == "go get")
    elif role == "script":
        draft.script(operand.word)
    elif role == "url":
        draft.urls.append(UrlUse(operand.word))
    elif role == "revision":
        use_revision(draft, operand.word, operand.at, parsed.dash_dash)
