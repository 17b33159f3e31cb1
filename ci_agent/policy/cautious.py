"""What to think of programs that nobody has described: every argument matters, and any operand may be a file."""

from ci_agent.policy.effects import Effects, FileUse
from ci_agent.policy.words import Word


def interpret(words: tuple[Word, ...]) -> Effects:
    """Only a pattern that spells each argument covers such a command."""
    if not words:
        return Effects()
    arguments = words[1:]
    return Effects(
        files=tuple(FileUse(effect, word) for word in arguments if _may_be_file(word) for effect in ("read", "write")),
        hazards=tuple((at, "means something that is not known") for at in range(1, len(words))),
        known=False,
        problem=next((f"{word.text} is not known" for word in words if word.literal is None), None),
    )


def _may_be_file(word: Word) -> bool:
    return word.text != "" and not word.text.startswith("-")
