"""Archives: the mode decides whether files are read from the disk or written to it."""

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.options import Parsed
from ci_agent.policy.words import Word, literal_word

_ENDINGS = frozenset(
    {"gz", "tgz", "z", "Z", "bz2", "tbz", "tbz2", "xz", "txz", "lzma", "zst", "tzst", "lz4", "br", "lz"}
)


def read_tar(parsed: Parsed, draft: Draft) -> None:
    """Members are relative to the last `-C`; the archive itself is not."""
    extracts = parsed.has("-x", "--extract", "--get")
    lists = parsed.has("-t", "--list", "-d", "--diff", "--compare")
    shows = parsed.has("-O", "--to-stdout")
    folders = [value for _, value in parsed.values("-C", "--directory", "--one-top-level")]
    for _, archive in parsed.values("-f", "--file"):
        if (archive.literal or ":").partition(":")[2]:
            draft.hazard(_index_of(parsed, archive), "reaches another host")
        draft.use("read" if extracts or lists else "write", archive)
    if extracts:
        for folder in folders or [literal_word(".")]:
            draft.use("list" if shows else "write", folder, recursive=True)
    elif not lists:
        for folder in folders:
            draft.use("list", folder)
        for operand in parsed.operands:
            draft.use("read", _beneath(folders, operand.word), recursive=True)


def _index_of(parsed: Parsed, value: Word) -> int:
    return next(found.at for found in parsed.options if found.value is value)


def _beneath(folders: list[Word], member: Word) -> Word:
    if not folders or member.literal is None or member.text.startswith("/"):
        return member
    return literal_word("/".join([*(folder.text for folder in folders), member.text]), member.span)


def read_zip(parsed: Parsed, draft: Draft) -> None:
    """`zip ARCHIVE FILE...`."""
    words = [operand.word for operand in parsed.operands]
    recursive = parsed.has("-r", "-R", "--recurse-paths", "--recurse-patterns")
    if words:
        draft.use("write", words[0])
    for word in words[1:]:
        draft.use("read", word, recursive)
        if parsed.has("-m", "--move"):
            draft.use("delete", word, recursive)


def read_unzip(parsed: Parsed, draft: Draft) -> None:
    """`unzip ARCHIVE MEMBER... -d FOLDER`: without a switch that only shows, it extracts."""
    for operand in parsed.operands[:1]:
        draft.use("read", operand.word)
    if not parsed.has("-l", "-t", "-p", "-c", "-v", "-z", "-Z", "-Z1", "-ZT"):
        folders = [value for _, value in parsed.values("-d")]
        for folder in folders or [literal_word(".")]:
            draft.use("write", folder, recursive=True)


def read_compressor(parsed: Parsed, draft: Draft) -> None:
    """gzip and its kind replace FILE by FILE.gz, unless the result goes to standard output."""
    shows = parsed.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
    recursive = parsed.has("-r", "--recursive")
    for operand in parsed.operands:
        draft.use("read", operand.word, recursive)
        if not shows:
            if recursive:
                draft.write_whole(operand.word, in_place=True)
            else:
                draft.use("write", operand.word)
            draft.use("write", _result(operand.word))


def _result(word: Word) -> Word:
    """The name that a file gets: an ending more, or one less."""
    text = word.literal
    if text is None:
        return word
    stem, dot, ending = text.rpartition(".")
    if dot and ending in _ENDINGS:
        return literal_word(f"{stem}.tar" if ending.startswith("t") else stem, word.span)
    return literal_word(f"{text}.gz", word.span)


def read_ar(parsed: Parsed, draft: Draft) -> None:
    """`ar KEY ARCHIVE FILE...`."""
    words = [operand.word for operand in parsed.operands]
    if len(words) < 2:
        return
    key, archive, *members = words
    only_reads = (key.literal or "x").lstrip("-")[:1] in ("t", "p")
    draft.use("read" if only_reads else "write", archive)
    for member in members:
        draft.use("read" if only_reads else "write", member)
