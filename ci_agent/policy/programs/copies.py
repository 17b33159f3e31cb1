"""Where copied and moved files land: under their own names, under their whole paths, or their contents alone."""

from collections.abc import Sequence

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.options import Parsed
from ci_agent.policy.words import Word, literal_word


def use_target(parsed: Parsed, draft: Draft, target: Word, sources: Sequence[Word], recursive: bool) -> None:
    """The target is written: it may be a file, a folder for the sources, or take the contents of one."""
    merged = [source for source in sources if recursive and _gives_contents(parsed, source)]
    if merged:
        draft.write_whole(target, merged)
    if len(merged) < len(sources) or not sources:
        draft.use("write", target, recursive, [source for source in sources if source not in merged])
    if parsed.has("--parents", "--relative") or (parsed.has("-R") and parsed.profile.name == "rsync"):
        for source in sources:
            draft.use("write", _below(target, source), recursive)


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


def _below(target: Word, source: Word) -> Word:
    if target.literal is None or source.literal is None:
        return source
    return literal_word(f"{target.text}/{source.text.lstrip('/')}", source.span)
