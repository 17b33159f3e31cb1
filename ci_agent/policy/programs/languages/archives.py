"""Archives: the mode decides whether files are read from the disk or written to it."""

import re
from collections.abc import Sequence

from ci_agent.policy.effects import FileEffect, FileUse
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages.builds import read_argument_files
from ci_agent.policy.programs.options import tail
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_ENDING = re.compile(r"[.\-_](?:t?(?:gz|bz2?|xz|lz4?|lzma|zst)|taz|z|gzip|br|zz)\Z", re.IGNORECASE)
"""What these programs take off a name; the `t` stands for `.tar`."""

_ENDING_OF_GZIP = re.compile(r"(?:\.t?gz|\.taz|-gz|[.\-_]z)\Z", re.IGNORECASE)
"""Behind a name that has one of these already, gzip tries no other."""

_ADDED = {
    "gzip": ".gz",
    "compress": ".Z",
    "pigz": ".gz",
    "bzip2": ".bz2",
    "xz": ".xz",
    "lzma": ".lzma",
    "lzip": ".lz",
    "zstd": ".zst",
    "lz4": ".lz4",
    "brotli": ".br",
}
"""What each program adds to a name."""

_APPENDED = (".gz", ".z", "-z", ".Z")
"""What gzip tries behind a name that nothing has."""

_UNZIPS = frozenset({"zcat", "gzcat", "zless", "zmore", "zgrep", "zegrep", "zfgrep"})
"""Scripts and names of gzip."""


def read_tar(parsed: Parsed, draft: Draft) -> None:
    """Members are relative to the `-C` in front of them, each of which is relative to the one before; the archive is
    not."""
    extracts = parsed.has("-x", "--extract", "--get")
    lists = parsed.has("-t", "--list", "-d", "--diff", "--compare")
    shows = parsed.has("-O", "--to-stdout")
    for _, archive in parsed.values("-f", "--file"):
        if (archive.literal or ":").partition(":")[2]:
            draft.hazard(_index_of(parsed, archive), "reaches another host")
        draft.use("read" if extracts or lists else "write", archive)
    folders = _folders(parsed)
    if extracts:
        for folder in _reached(parsed, folders):
            draft.use("list" if shows else "write", folder, recursive=True)
    elif not lists or parsed.has("-d", "--diff", "--compare"):
        for _, folder in folders:
            draft.use("list", folder)
        for operand in parsed.operands:
            if operand.word.text.startswith("@"):
                # To bsdtar, an archive whose members are taken over.
                draft.use("read", tail(operand.word, 1))
            before = [folder for at, folder in folders if at < operand.at]
            draft.use("read", _beneath(before[-1] if before else None, operand.word), recursive=True)


def _folders(parsed: Parsed) -> list[tuple[int, Word]]:
    """Each folder that `-C` leads to, with where it says so."""
    folders: list[tuple[int, Word]] = []
    for index, value in parsed.values("-C", "--directory"):
        folders.append((index, _beneath(folders[-1][1] if folders else None, value)))
    return folders


def _reached(parsed: Parsed, folders: list[tuple[int, Word]]) -> list[Word]:
    """Where it unpacks: in each folder that has members behind it, in the last one when none has."""
    reached = [folder for _, folder in folders]
    if not folders or any(operand.at < folders[0][0] for operand in parsed.operands):
        reached.insert(0, literal_word("."))
    for _, subfolder in parsed.values("--one-top-level"):
        reached = [_beneath(folder if folders else None, subfolder) for folder in reached]
    return reached


def _index_of(parsed: Parsed, value: Word) -> int:
    return next(found.at for found in parsed.options if found.value is value)


def _beneath(folder: Word | None, member: Word) -> Word:
    if folder is None or member.literal is None or member.text.startswith("/"):
        return member
    if folder.literal is None:
        return Word("unknown", f"{folder.text}/{member.text}", member.span, prefix=folder.prefix)
    return literal_word(f"{folder.text}/{member.text}", member.span)


def read_zip(parsed: Parsed, draft: Draft) -> None:
    """`zip ARCHIVE FILE...`; with `-R` the operands are patterns of what lies beneath the folder."""
    _refuse_double_letters(parsed, draft)
    words = [operand.word for operand in parsed.operands]
    if words and parsed.has("-O", "--output-file", "--out"):
        draft.use("read", words[0])
    searches = parsed.has("-R", "--recurse-patterns")
    recursive = searches or parsed.has("-r", "--recurse-paths")
    if words:
        draft.use("write", words[0])
        if words[0].literal not in (None, "-") and "." not in words[0].text.rpartition("/")[2]:
            draft.use("write", literal_word(f"{words[0].text}.zip", words[0].span))
    for word in [literal_word(".")] if searches else words[1:]:
        draft.use("read", word, recursive)
        if parsed.has("-m", "--move"):
            draft.use("delete", word, recursive)


def _refuse_double_letters(parsed: Parsed, draft: Draft) -> None:
    """In a cluster, `TT`, `lf` and `li` are options of two letters; values may follow the first two at once, and the
    `i` of the last one takes none."""
    letters: dict[int, str] = {}
    for found in parsed.options:
        if not found.spelled.startswith("--"):
            letters[found.at] = letters.get(found.at, "") + found.spelled.lstrip("-")
    for index, cluster in letters.items():
        if cluster.count("T") > 1 or {"l", "f"} <= set(cluster) or {"l", "i"} <= set(cluster):
            draft.hazard(index, "may run a command or write a file: write its options one by one")


def read_unpack_here(parsed: Parsed, draft: Draft) -> None:
    """`gh run download`, `helm pull --untar`: what comes is unpacked where they work, or as told."""
    if parsed.profile.name.startswith("helm") and not parsed.has("--untar"):
        return
    told = [value for _, value in parsed.values("-D", "--dir", "-d", "--destination", "--untardir")]
    for folder in told or [literal_word(".")]:
        draft.use("write", folder, recursive=True)


def read_unzip(parsed: Parsed, draft: Draft) -> None:
    """`unzip ARCHIVE MEMBER... -d FOLDER`: without a switch that only shows, it extracts."""
    for operand in parsed.operands[:1]:
        draft.use("read", operand.word)
        _use_if_there(draft, operand.word, (".zip", ".ZIP"))
    if not parsed.has("-l", "-t", "-p", "-c", "-v", "-z", "-Z", "-Z1", "-ZT"):
        folders = [value for _, value in parsed.values("-d")]
        for folder in folders or [literal_word(".")]:
            draft.use("write", folder, recursive=True)


def read_zipinfo(parsed: Parsed, draft: Draft) -> None:
    for operand in parsed.operands[:1]:
        _use_if_there(draft, operand.word, (".zip", ".ZIP"))


def _use_if_there(draft: Draft, word: Word, endings: Sequence[str], effect: FileEffect = "read") -> None:
    """They look for these names, too."""
    if word.literal not in (None, "", "-") and not word.text.endswith(tuple(endings)):
        names = [literal_word(word.text + ending, word.span) for ending in endings]
        draft.files += [FileUse(effect, name, if_there=True) for name in names]


def read_unzipped(parsed: Parsed, draft: Draft) -> None:
    """`zcat NAME` prints NAME.gz, and so does `zgrep PATTERN NAME`."""
    if parsed.called is not None and parsed.called.text.rpartition("/")[2] in _UNZIPS:
        has_pattern = parsed.profile.name == "zgrep" and not parsed.has(*parsed.profile.instead)
        for operand in parsed.operands[1 if has_pattern else 0 :]:
            if _ENDING_OF_GZIP.search(operand.word.literal or "") is None:
                _use_if_there(draft, operand.word, _APPENDED)


def read_compressor(parsed: Parsed, draft: Draft) -> None:
    """gzip and its kind replace FILE by FILE.gz, unless the result goes to standard output."""
    works = parsed.has("-d", "--decompress", "--uncompress", "-z", "--compress")
    # Of `-t` and `-d` the later one counts, but not to all of these programs.
    asks = parsed.has("-l", "--list", "-t", "--test") and not works
    shows = asks or parsed.has("-c", "--stdout", "--to-stdout")
    recursive = parsed.has("-r", "--recursive")
    for operand in parsed.operands:
        draft.use("read", operand.word, recursive)
        appended = _appended(operand.word, parsed)
        _use_if_there(draft, operand.word, appended)
        if not shows:
            _use_if_there(draft, operand.word, appended, "write")
            if recursive:
                draft.write_whole(operand.word, in_place=True)
            else:
                draft.use("write", operand.word)
            for result in _results(operand.word, parsed):
                draft.use("write", result)


def _appended(word: Word, parsed: Parsed) -> tuple[str, ...]:
    """What gzip may put behind a name before it unpacks what it finds, and then deletes."""
    called = "" if parsed.called is None else parsed.called.text.rpartition("/")[2]
    unpacks = called in ("gunzip", "unpigz", "uncompress") or parsed.has(
        "-d", "--decompress", "--uncompress", "-l", "--list", "-t", "--test"
    )
    is_gzip = parsed.profile.name in ("gzip", "pigz", "compress")
    if not (is_gzip and unpacks) or _ENDING_OF_GZIP.search(word.literal or "") is not None:
        return ()
    return (*(suffix.text for _, suffix in parsed.values("-S", "--suffix") if suffix.literal), *_APPENDED)


def _results(word: Word, parsed: Parsed) -> list[Word]:
    """The names that a file may get: an ending more, or one less."""
    text = word.literal
    if text is None:
        return [word]
    packs = parsed.has("-z", "--compress")
    suffixes = [suffix.text for _, suffix in parsed.values("-S", "--suffix") if suffix.literal]
    names = [name for suffix in suffixes for name in (text + suffix, text.removesuffix(suffix))]
    return [literal_word(name, word.span) for name in names or _result(text, parsed.profile.name, packs)]


def _result(text: str, program: str, packs: bool) -> list[str]:
    """`packs`: it is told to pack, whatever the name says."""
    ending = _ENDING.search(text)
    longer = text + _ADDED[program]
    if ending is None:
        return [longer, *([f"{text}.out"] if program == "bzip2" else [])]
    stem = text[: ending.start()]
    return [f"{stem}.tar" if ending[0][1].lower() == "t" else stem, *([longer] if packs else [])]


def read_ar(parsed: Parsed, draft: Draft) -> None:
    """`ar KEY ARCHIVE FILE...`: the letters of the key say what is done, in any order."""
    for operand in parsed.operands:
        if operand.word.text.startswith(("--", "@")):
            draft.hazard(operand.at, "loads a plugin, or takes options from a file")
    words = [operand.word for operand in parsed.operands]
    key = (words[0].literal or "qxM").lstrip("-") if words else ""
    if "M" in key:
        draft.doubt("the commands that ar reads from its input are not known")
    if len(words) < 2:
        return
    _, archive, *members = words
    adds, extracts = not {"r", "q", "m"}.isdisjoint(key), "x" in key
    draft.use("write" if adds or not {"d", "s"}.isdisjoint(key) else "read", archive)
    for member in members if adds or extracts else ():
        draft.use("read" if adds else "write", member)
    if extracts and not members:
        draft.use("write", literal_word("."), recursive=True)


def read_python_archive(parsed: Parsed, draft: Draft) -> None:
    """`python -m zipfile -e ARCHIVE FOLDER`, `python -m tarfile -c ARCHIVE FILE...`."""
    words = [operand.word for operand in parsed.operands]
    creates = parsed.has("-c", "--create")
    for word in words[:1]:
        draft.use("write" if creates else "read", word)
    if creates:
        for word in words[1:]:
            draft.use("read", word, recursive=True)
    elif parsed.has("-e", "--extract"):
        draft.use("write", words[1] if len(words) > 1 else literal_word("."), recursive=True)


def read_cpio(parsed: Parsed, draft: Draft) -> None:
    """`cpio -i` unpacks what it reads, also to where an absolute name says; `-p FOLDER` copies."""
    if parsed.has("-i", "--extract") and not parsed.has("-t", "--list"):
        draft.use("write", literal_word("."), recursive=True)
        if not parsed.has("--no-absolute-filenames"):
            for found in parsed.options:
                if found.option.name in ("-i", "--extract"):
                    draft.hazard(found.at, "writes where the archive says: add --no-absolute-filenames")
    if parsed.has("-p", "--pass-through"):
        for operand in parsed.operands:
            draft.use("write", operand.word, recursive=True)


def read_jar(parsed: Parsed, draft: Draft) -> None:
    extracts = parsed.has("-x", "--extract")
    only_reads = extracts or parsed.has("-t", "--list", "-d", "--describe-module")
    folders = [value for _, value in parsed.values("-C", "--dir")]
    for _, archive in parsed.values("-f", "--file"):
        draft.use("read" if only_reads else "write", archive)
    if extracts:
        for folder in folders or [literal_word(".")]:
            draft.use("write", folder, recursive=True)
    elif parsed.has("-i", "--generate-index"):
        for word in [*(value for _, value in parsed.values("--generate-index")), *(o.word for o in parsed.operands)]:
            draft.use("write", word)
    elif not only_reads:
        for word in [*folders, *(operand.word for operand in parsed.operands)]:
            draft.use("read", word, recursive=True)
    read_argument_files(parsed, draft)


_7Z_READS = frozenset({"l", "t", "h", "b", "i"})


def read_7z(parsed: Parsed, draft: Draft) -> None:
    """`7z COMMAND ARCHIVE FILE...`; `-oFOLDER` is where it unpacks, else the present folder."""
    if not parsed.operands:
        return
    command, *words = [operand.word for operand in parsed.operands]
    if command.literal is None:
        draft.doubt(f"what 7z does with {command.text} is not known")
    for operand in parsed.operands[2:]:
        if operand.word.text.startswith("@"):
            draft.hazard(operand.at, "takes names of files from a file")
            draft.use("read", tail(operand.word, 1))
    if command.literal in ("x", "e"):
        folders = [value for _, value in parsed.values("-o*")] or [literal_word(".")]
        for folder in folders:
            draft.use("write", folder, recursive=True)
    only_reads = command.literal in (*_7Z_READS, "x", "e")
    for word in words[:1]:
        draft.use("read" if only_reads else "write", word)
    for word in words[1:] if command.literal in ("a", "u", "h") else ():
        draft.use("read", word, recursive=True)
