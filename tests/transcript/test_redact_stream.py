"""A secret that arrives in chunks is hidden, wherever it is cut, and harmless text is not kept waiting."""

import random

import pytest

from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.redact_stream import MAX_HELD_CHARS, StreamRedactor

SECRET = "q8Zt3Lw0Xv5Rk1Np7Yb2"
SHORT = "h7Kd/92q="
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nQ8zk3nT5xW1bYp7RcVh2\n-----END PRIVATE KEY-----"
COLOURED = "\x1b[1;31m \x1b[0m".join(SECRET)
REDACTOR = Redactor([SECRET, SHORT])


def streamed(chunks: list[str]) -> str:
    stream = StreamRedactor(REDACTOR)
    return "".join([*map(stream.feed, chunks), stream.flush()])


@pytest.mark.parametrize("hidden", [SECRET, SHORT, TOKEN, KEY, "\n".join(SECRET), COLOURED], ids=lambda text: text[:8])
def test_a_secret_cut_at_any_two_places_is_hidden(hidden: str) -> None:
    text = f"the value is {hidden} and more"
    for first in range(len(text)):
        for second in range(first, len(text) + 1, 7):
            chunks = [text[:first], text[first:second], text[second:]]
            assert streamed(chunks) == "the value is [redacted] and more"


def test_character_by_character_gives_what_the_whole_text_gives() -> None:
    text = f"{SECRET[:9]} x {SHORT}{SECRET}, {TOKEN}; {SECRET[5:]}\n{KEY}\n end {SECRET[:7]}"
    assert streamed(list(text)) == REDACTOR.text(text)


def test_any_chunks_give_what_the_whole_text_gives() -> None:
    source = random.Random(5)
    words = [SECRET, SHORT, TOKEN, KEY, SECRET[:8], SECRET[3:], SHORT[:4], "plain", "-----", "q8Z", "\n", " "]
    for _ in range(300):
        text = " ".join(source.choices(words, k=12)) + "".join(source.choices(words, k=3))
        cuts = sorted(source.choices(range(len(text) + 1), k=source.randrange(8)))
        chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        # Two secrets that touch are one place in the whole text, and may be two in chunks.
        assert streamed(chunks).replace("[redacted][redacted]", "[redacted]") == REDACTOR.text(text), chunks


def test_whole_words_are_released_at_once_when_no_secret_ends_like_them() -> None:
    stream = StreamRedactor(REDACTOR)
    assert stream.feed("Reading the file... ") == "Reading the file... "
    assert stream.feed("and some") == "and "
    assert stream.feed("thing!\nelse") == "something!\n"
    assert stream.flush() == "else"
    assert stream.flush() == ""


def test_only_what_could_go_on_as_a_secret_is_held_back_after_a_word() -> None:
    stream = StreamRedactor(REDACTOR)
    assert stream.feed("it begins with h7Kd \n ") == "it begins with "
    assert stream.feed("and goes on otherwise. ") == "h7Kd \n and goes on otherwise. "


def test_endless_text_without_an_end_of_a_word_is_not_collected() -> None:
    for endless in ("x" * 1000, " " * 1000, "-----BEGIN PRIVATE KEY-----", "\n-----BEGIN NOTHING\n"):
        stream = StreamRedactor(REDACTOR)
        fed = released = 0
        for _ in range(200):
            fed += len(endless)
            released += len(stream.feed(endless).replace("[redacted]", endless))
        assert fed - released <= 2 * MAX_HELD_CHARS
