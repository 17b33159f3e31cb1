"""Programs that copy or fetch, and write the operands of other shapes than plain files."""

import re

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.options import tail
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_GPG_COMMANDS = (
    *("-k", "-K", "--list-keys", "--list-public-keys", "--list-secret-keys", "--list-sigs", "--fingerprint"),
    *("--verify", "--import", "--list-packets", "--version"),
)
_MODE_LETTERS = tuple(f"-{letter}" for letter in "rwxXstugoa")


def read_dd(parsed: Parsed, draft: Draft) -> None:
    """`if=FILE`, `of=FILE`, and settings that name no file."""
    for operand in parsed.operands:
        word = operand.word
        text = word.prefix if word.kind == "unknown" else word.text
        if "=" not in text:
            draft.doubt(f"{word.text} may name a file to write")
        elif text.startswith("if="):
            draft.use("read", tail(word, 3))
        elif text.startswith("of="):
            draft.use("write", tail(word, 3))


def read_date(parsed: Parsed, draft: Draft) -> None:
    """An operand that is no format (`+%F`) sets the clock."""
    for operand in parsed.operands:
        if not (operand.word.prefix or operand.word.text).startswith("+"):
            draft.hazard(operand.at, "sets the clock")


def read_gpg(parsed: Parsed, draft: Draft) -> None:
    """A file without a command is decrypted, into one of the same name without its ending."""
    for operand in parsed.operands:
        draft.use("read", operand.word)
        if not parsed.has(*_GPG_COMMANDS):
            draft.hazard(operand.at, "decrypts it into a file of its name without the ending")
            draft.use("write", _without_ending(operand.word))


def _without_ending(word: Word) -> Word:
    return word if word.literal is None else literal_word(word.text.rpartition(".")[0] or word.text, word.span)


def read_man(parsed: Parsed, draft: Draft) -> None:
    """A page that is given by a path, or as a file, is read from there."""
    for operand in parsed.operands:
        word = operand.word
        if word.literal is None or "/" in word.text or parsed.has("-l", "--local-file"):
            draft.use("read", word)


def read_mode(parsed: Parsed, draft: Draft) -> None:
    """The first operand is the mode or the owner, unless an option gives it (`chmod -x FILE`, `--reference`)."""
    given = parsed.has("--reference") or (parsed.profile.name == "chmod" and parsed.has(*_MODE_LETTERS))
    recursive = parsed.has("-R", "--recursive")
    for operand in parsed.operands[0 if given else 1 :]:
        if recursive:
            draft.write_whole(operand.word, in_place=True)
        else:
            draft.use("write", operand.word)


def read_install(parsed: Parsed, draft: Draft) -> None:
    """Copies like `cp`; with `-d` every operand is a folder to make."""
    words = [operand.word for operand in parsed.operands]
    if parsed.has("-d", "--directory"):
        sources, targets = list[Word](), words
    elif parsed.has("-t", "--target-directory"):
        sources, targets = words, list[Word]()
    else:
        sources, targets = words[:-1], words[-1:]
    for word in sources:
        draft.use("read", word)
    for word in targets:
        draft.use("write", word, into=sources)


def read_patch(parsed: Parsed, draft: Draft) -> None:
    """The patch says which files to change; one that is named, it may still rename, to whatever it likes."""
    if not parsed.has("--dry-run", "-o", "--output"):
        draft.use("write", literal_word("."), recursive=True)
    elif not parsed.has("--dry-run"):
        # What is patched is printed, or comes to lie elsewhere.
        named = [operand.word for operand in parsed.operands[:1]]
        for word in named or [literal_word(".")]:
            draft.use("read", word, recursive=not named)


def read_ln(parsed: Parsed, draft: Draft) -> None:
    """A hard link gives a file a second name; what a symbolic one holds is relative to where the link stands."""
    words = [operand.word for operand in parsed.operands]
    folders = [value for _, value in parsed.values("-t", "--target-directory")]
    targets, link = (words[:-1], words[-1]) if len(words) > 1 and not folders else (words, None)
    symbolic = parsed.has("-s", "--symbolic")
    for target in targets:
        base = link.text.rpartition("/")[0] if link is not None else folders[0].text if folders else ""
        draft.use("list" if symbolic else "read", _seen_from(base, target) if symbolic else target)
    for place in [*folders, *([link] if link is not None else [])] or [literal_word(".")]:
        draft.use("write", place, into=targets)


def _seen_from(folder: str, target: Word) -> Word:
    if target.literal is None or not folder or target.text.startswith(("/", "~")):
        return target
    return literal_word(f"{folder}/{target.text}", target.span)


def read_split(parsed: Parsed, draft: Draft) -> None:
    """`split FILE PREFIX`; a run that is given no prefix names its pieces itself."""
    if parsed.profile.name == "csplit":
        _use_pieces(draft, next((value for _, value in parsed.values("-f", "--prefix")), literal_word("xx")), "00")
    elif not parsed.has("--filter", "--help", "--version"):
        _use_pieces(
            draft, parsed.operands[1].word if len(parsed.operands) > 1 else literal_word("x"), _first_piece(parsed)
        )


def _first_piece(parsed: Parsed) -> str:
    """`aa`, with another length, digits or an ending when the options say so."""
    numbered = parsed.has("-d", "-x", "--numeric-suffixes", "--hex-suffixes")
    length = parsed.last("-a", "--suffix-length")
    size = int(length.text) if length is not None and re.fullmatch("[1-9]", length.text) else 2
    ending = parsed.last("--additional-suffix")
    return ("0" if numbered else "a") * size + (ending.text if ending is not None else "")


def _use_pieces(draft: Draft, prefix: Word, first: str) -> None:
    """The first piece, and what is there already under a name that a later one may get."""
    if prefix.literal is not None:
        escaped = re.sub(r"([*?\[\]\\])", r"\\\1", prefix.text)
        draft.use("write", literal_word(prefix.text + first, prefix.span))
        draft.use("write", Word("glob", escaped + "*", prefix.span))
