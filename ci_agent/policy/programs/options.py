"""Tells options, their values and operands apart, as the program itself would."""

import re
from collections import Counter
from collections.abc import Sequence

from ci_agent.policy.programs.option_names import lookup, starred, unlisted
from ci_agent.policy.programs.parsed import Found, Operand, Parsed
from ci_agent.policy.programs.profile import Option, Profile
from ci_agent.policy.programs.telltale import tells
from ci_agent.policy.words import Word

_GLOB_SPECIALS = frozenset("*?[\\")

_LETTERS_BEFORE_PATH = re.compile(r"[A-Za-z0-9]{1,2}(?=[/~]|\.\.?/)")
"""`-ae/etc/x`: behind more letters a slash is within a relative path."""

_TAKE_OPERANDS_ALIKE = (None, "make", "git_show", "git_diff")
"""Languages to which it does not matter in which place an operand stands."""

_DATA_BEHIND_THE_FIRST = frozenset({"printf"})
"""To these, all that follows the first operand is data, however many words it is and whatever they begin with."""

_SHORT_CLUSTER = re.compile(r"-[A-Za-z]{1,4}")

_LOOK_TWICE = ("git archive", "openssl ")
"""Programs that may take the value of one option for another option."""

_NO_FILE = frozenset({"data", "code", "script", "look", "in_place", "recursive"})
"""Meanings of options whose value names nothing that is reached."""

_MAX_REPEATS = 2
"""How often a letter of one cluster is noted: none means more when it is there more often."""


def parse(profile: Profile, words: Sequence[Word], start: int) -> Parsed:
    """Sort the words from `start` on. A subcommand, and all that follows it, ends up among the operands."""
    parsed = Parsed(profile, start, words[start - 1] if start else None)
    first_only = not profile.syntax.permutes or bool(profile.commands)
    has_options, delegates = profile.syntax.options, profile.delegates
    position = _read_bundle(parsed, words, start) if profile.bundled else start
    end = len(words)
    while position < end:
        word = words[position]
        if delegates and parsed.options and parsed.options[-1].option.name in delegates:
            break
        if has_options and (word.kind != "literal" or word.text.startswith(("-", "+"))):
            if word.literal == "--":
                parsed.dash_dash = position
                position += 1
                break
            if _is_option(parsed, word, position):
                position = _read_option(parsed, words, position)
                continue
        parsed.operands.append(Operand(word, position))
        position += 1
        if first_only:
            break
    if position < end:
        parsed.operands += map(Operand, words[position:], range(position, end))
    _refuse_splitting(parsed)
    return parsed


def _refuse_splitting(parsed: Parsed) -> None:
    """A word that may become any number of words moves all that follow."""
    for index, operand in enumerate(parsed.operands):
        if not operand.word.splits or operand.word.beneath or not _matters(parsed.profile):
            continue
        if index > 0 and parsed.profile.name in _DATA_BEHIND_THE_FIRST:
            continue
        if not _may_be_left_out(parsed.profile, operand, index):
            parsed.problem = parsed.problem or _splitting(operand.word)


def _splitting(word: Word) -> str:
    return f"nobody knows how many words {word.text} becomes; in double quotes it is one"


def _may_be_left_out(profile: Profile, operand: Operand, index: int) -> bool:
    """A word that is there or not, among operands that all mean the same; a subcommand sees to its own."""
    roles = profile.operands
    alike = roles.repeated in ("data", "revision") and not (roles.leading or roles.trailing)
    alike = alike and profile.language in _TAKE_OPERANDS_ALIKE
    return bool(operand.word.stand_ins) and (index > 0 if profile.commands else alike)


def _matters(profile: Profile) -> bool:
    operands = profile.operands
    roles = {*operands.leading, operands.repeated, *operands.trailing}
    return profile.harmful or not roles <= {"data", "pattern", None}


def _is_option(parsed: Parsed, word: Word, index: int) -> bool:
    profile = parsed.profile
    if word.kind == "literal":
        return _is_like_option(profile, word.text)
    if word.kind == "choice":
        if any(begins_option(profile, choice) is not False for choice in word.choices):
            _doubt(parsed, word)
        return False
    begins = begins_option(profile, word)
    if begins is None:
        if word.kind == "glob" or word.beneath:
            parsed.may_be_options += [index] if profile.harmful else []
        else:
            _doubt(parsed, word)
    return begins is True


def begins_option(profile: Profile, word: Word) -> bool | None:
    """Whether the word begins like an option; None when that cannot be known."""
    if word.pipe:
        return False
    if word.stand_ins:
        begin = {_is_like_option(profile, text) for text in word.stand_ins}
        return begin.pop() if len(begin) == 1 else None
    text = word.prefix if word.kind == "unknown" else word.text
    if word.kind == "unknown" and (not text or (word.splits and not word.beneath)):
        return None
    if word.kind == "glob" and text[:1] in ("*", "?", "["):
        return None
    return _is_like_option(profile, text) or (word.kind == "unknown" and text == "-")


def _is_like_option(profile: Profile, text: str) -> bool:
    return (text.startswith("-") and text != "-") or (profile.plus and text.startswith("+"))


def _doubt(parsed: Parsed, word: Word) -> None:
    if parsed.profile.harmful:
        parsed.problem = parsed.problem or f"{word.text} may be an option of {_name(parsed)}"


def _name(parsed: Parsed) -> str:
    """The program and its subcommand; several that mean the same share the profile of one."""
    above, blank, name = parsed.profile.name.rpartition(" ")
    written = parsed.called.literal if parsed.called is not None and blank else None
    return f"{above}{blank}{written or name}"


def _read_option(parsed: Parsed, words: Sequence[Word], index: int) -> int:
    """Read the option at `index`; return the index after it and its value."""
    word = words[index]
    text = word.prefix if word.kind == "unknown" else word.text
    name, equals, _ = text.partition("=")
    profile = parsed.profile
    if not text.startswith("--") and profile.syntax.clusters and not _is_whole(profile, name):
        return _read_cluster(parsed, words, index, text)
    if word.kind != "literal" and _blurred(word, name, equals):
        parsed.problem = parsed.problem or f"{word.text} may be any option of {_name(parsed)}"
        return index + 1
    option, attached = lookup(profile, name)
    begins = attached if attached is not None else len(name) + 1 if equals else None
    value = None if begins is None else tail(word, begins)
    return _add(parsed, words, Found(option, name, index, value, None, begins or 0))


def _is_whole(profile: Profile, name: str) -> bool:
    """Programs with clusters may have long options behind one dash too (`gcc -std`, `curl` has none)."""
    return (len(name) > 2 or name.startswith("+")) and (name in profile.options or starred(profile, name) is not None)


def _blurred(word: Word, name: str, equals: str) -> bool:
    """The name of the option is not certain, in a word that is no literal."""
    return not equals if word.kind == "unknown" else not _GLOB_SPECIALS.isdisjoint(name)


def _add(parsed: Parsed, words: Sequence[Word], found: Found) -> int:
    """Note the option, with the words that it needs for values; return the index behind them."""
    end = found.at + 1
    if found.option.arity == "takes_two":
        end += 2
    elif found.option.arity == "takes" and found.value is None:
        end += 1
    end = min(end, len(words))
    for position in range(found.at + 1, end):
        _note_value(parsed, words[position], position)
    if end > found.at + 1:
        found = found._replace(value=words[end - 1], value_index=end - 1, value_offset=0)
    parsed.options.append(found)
    return end


def _note_value(parsed: Parsed, value: Word, position: int) -> None:
    if parsed.profile.name.startswith(_LOOK_TWICE):
        if value.kind == "literal" and len(value.text) > 1 and value.text[0] == "-":
            _note_option_as_value(parsed, value.text, position)
        elif value.kind != "literal" and not value.pipe and not value.prefix:
            _doubt(parsed, value)
    if value.splits and _matters(parsed.profile):
        parsed.problem = parsed.problem or _splitting(value)
    if value.kind == "glob" and parsed.profile.harmful:
        parsed.may_be_options.append(position)


def _note_option_as_value(parsed: Parsed, text: str, position: int) -> None:
    """Some programs look for options twice, and take this one for what it looks like: `git archive --mtime -o FILE`."""
    profile = parsed.profile
    names = [text.partition("=")[0]]
    if profile.syntax.clusters and text[1] != "-":
        names = [f"-{letter}" for letter in (text[1:] if _SHORT_CLUSTER.fullmatch(text) else text[1:2])]
    options = (profile.options.get(lookup(profile, name)[0].name) for name in names)
    parsed.disguised += [(position, option.why) for option in options if option is not None and option.why is not None]


def _read_cluster(parsed: Parsed, words: Sequence[Word], index: int, text: str) -> int:
    word, profile = words[index], parsed.profile
    if profile.unlisted == "anything" and len(text) > 2:
        _note_whole(parsed, word, text, index)
    position = 1
    noted: dict[str, int] = {}
    while position < len(text):
        name = text[0] + text[position]
        position += 1
        times = noted.get(name, 0)
        if times == _MAX_REPEATS:
            continue
        noted[name] = times + 1
        if profile.numeric and text[position - 1].isdigit():
            parsed.options.append(Found(Option(name, "bare", "data"), name, index))
            continue
        option = profile.options.get(name) or unlisted(profile, name)
        if option.arity != "bare" and (option.arity != "may_take" or option.name in profile.options):
            if text.startswith("=", position):
                behind = Found(option, name, index, tail(word, position + 1), None, position + 1)
                if profile.short_equals:
                    return _add(parsed, words, behind)
                if position + 1 < len(text) or word.kind == "unknown":
                    _note_behind_equals(parsed, behind)
            rest = tail(word, position) if position < len(text) or word.kind == "unknown" else None
            return _add(parsed, words, Found(option, name, index, rest, None, position))
        parsed.options.append(Found(option, name, index))
    if word.kind == "unknown":
        _doubt(parsed, word)
    return index + 1


def _note_behind_equals(parsed: Parsed, found: Found) -> None:
    """To some programs `-f=FILE` is `-f FILE`, to others a file whose name begins with `=`: it counts as both."""
    if found.option.meaning in ("folder", "look_folder"):
        parsed.problem = parsed.problem or f"the folder behind {found.spelled}= is not certain: put a blank there"
    elif found.option.meaning not in _NO_FILE:
        parsed.options.append(found)


def _note_whole(parsed: Parsed, word: Word, text: str, index: int) -> None:
    """To a program whose options nobody has listed, `-shellcheck=x` may be one of a long name, and `-exyz` one with a
    value."""
    name = text.partition("=")[0]
    why, begins = tells(name), _first_unlisted(parsed.profile, text)
    if why is not None or begins is not None:
        value = None if begins is None else tail(word, begins)
        parsed.options.append(Found(Option(name, "may_take", "anything", why), name, index, value))


def _first_unlisted(profile: Profile, cluster: str) -> int | None:
    """Where the value of the first letter that no option has would begin; None: all have one, or an option has a
    value."""
    for position, letter in enumerate(cluster[1:], 1):
        option = profile.options.get(cluster[0] + letter)
        if option is None:
            begins = position + letter.isalnum()
            letters = _LETTERS_BEFORE_PATH.match(cluster, begins)
            return letters.end() if letters else begins
        if option.arity != "bare":
            return None
    return None


def _read_bundle(parsed: Parsed, words: Sequence[Word], index: int) -> int:
    """`tar xfC ARCHIVE FOLDER`: letters without a dash, whose values follow in their order."""
    if index == len(words) or words[index].literal is None or words[index].text.startswith("-"):
        return index
    following = index + 1
    letters = words[index].text
    meant = {letter: _short(parsed.profile, letter) for letter in set(letters)}
    noted: Counter[str] = Counter()
    for letter in letters:
        option = meant[letter]
        noted[letter] += 1
        if noted[letter] > _MAX_REPEATS and (option.arity != "takes" or following == len(words)):
            continue
        value, value_index = None, None
        if option.arity == "takes" and following < len(words):
            value, value_index = words[following], following
            following += 1
        parsed.options.append(Found(option, option.name, index, value, value_index))
    return following


def _short(profile: Profile, letter: str) -> Option:
    return profile.options.get("-" + letter) or unlisted(profile, "-" + letter)


def tail(word: Word, offset: int) -> Word:
    """What is left of a word without its first characters, which are certain."""
    if word.kind == "unknown":
        stand_ins = tuple(text[offset:] for text in word.stand_ins)
        return word._replace(prefix=word.prefix[offset:], stand_ins=stand_ins)
    return word._replace(text=word.text[offset:])
