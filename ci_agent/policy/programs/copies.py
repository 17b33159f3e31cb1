"""Where copied and moved files land: under their own names, under their whole paths, or their contents alone."""

import re
from collections.abc import Sequence

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word


def use_target(parsed: Parsed, draft: Draft, target: Word, sources: Sequence[Word], recursive: bool) -> None:
    """The target is written: it may be a file, a folder for the sources, or take the contents of one."""
    merged = [source for source in sources if recursive and _gives_contents(parsed, source)]
    if merged:
        draft.write_whole(target, merged)
    # By their names too: what is harmless in the one folder may be protected in the other.
    emptied = sources if _takes_place(parsed) else merged
    if emptied:
        draft.use("write", target, into=[child for source in emptied for child in _children(source)])
    if len(merged) < len(sources) or not sources:
        draft.use("write", target, recursive, [source for source in sources if source not in merged])
    if parsed.has("--parents", "--relative") or (parsed.has("-R") and parsed.profile.name == "rsync"):
        for source in sources:
            draft.use("write", _below(target, source), recursive)


def _takes_place(parsed: Parsed) -> bool:
    """`mv -T src dst`: the source becomes the target, even where an empty folder of that name is."""
    return parsed.profile.name == "mv" and parsed.has("-T", "--no-target-directory", "--exchange")


def _gives_contents(parsed: Parsed, source: Word) -> bool:
    """`cp -r src/. dst`, `cp -rT src dst`, `rsync -a src/ dst`."""
    if parsed.profile.name in ("mv", "git mv"):
        return False
    if source.kind == "choice":
        return any(_gives_contents(parsed, choice) for choice in source.choices)
    if source.kind == "unknown" or parsed.has("-T", "--no-target-directory"):
        return True
    text = source.text
    endings = ("/.", "/..", "/") if parsed.profile.name == "rsync" else ("/.", "/..")
    return text in (".", "..") or text.endswith(endings)


def _children(folder: Word) -> list[Word]:
    """What lies in a folder, and the folder, in whose place the target comes when it does not exist."""
    if folder.literal is None:
        return [folder]
    path = re.sub(r"([*?\[\]\\])", r"\\\1", folder.text.rstrip("/") or "/")
    return [folder, *(Word("glob", f"{path}/{names}", folder.span) for names in ("*", ".[!.]*", "..?*"))]


def _below(target: Word, source: Word) -> Word:
    if target.literal is None or source.literal is None:
        return source
    return literal_word(f"{target.text}/{source.text.lstrip('/')}", source.span)
