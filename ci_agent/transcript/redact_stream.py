"""Redaction of text that arrives in chunks, when a secret may be cut anywhere."""

import re

from ci_agent.transcript.redact import Redactor, common_size, in_full
from ci_agent.transcript.secret_forms import UNSEEN, squeeze, visible

MAX_HELD_CHARS = 65_536
"""More is never held back: text without an end of a word or of a key is then released as far as it is known."""

_MAX_WORD_CHARS = 4_096
_KEY_END = re.compile(r"-----END [^\n-]*-----")
_LAST_WORD = re.compile(rf"\S{{0,{_MAX_WORD_CHARS}}}\Z")


class StreamRedactor:
    """Gives each chunk back, redacted, but for a tail that may be the beginning of something secret: the last word,
    what could go on as a known secret, a private key that has not ended. `flush` gives the rest."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known = "\n".join(form.text for form in redactor.forms)
        self._held = ""

    def feed(self, chunk: str) -> str:
        self._held += chunk
        return self._release(self._safe_end())

    def flush(self) -> str:
        return self._release(len(self._held))

    def _release(self, end: int) -> str:
        released, self._held = self._held[:end], self._held[end:]
        return self._redactor.text(released)

    def _safe_end(self) -> int:
        text = self._held
        end = min(self._start_of_last_word(), self._start_of_known_tail(), self._start_of_open_key())
        for start, stop in self._redactor.find(text):
            if start < end < stop:
                end = start
        return end if len(text) - end <= MAX_HELD_CHARS else len(text)

    def _start_of_last_word(self) -> int:
        found = _LAST_WORD.search(self._held, max(len(self._held) - _MAX_WORD_CHARS, 0))
        return found.start() if found else len(self._held)

    def _start_of_known_tail(self) -> int:
        """Where the longest ending begins that occurs in a secret, white space and what cannot be seen aside."""
        squeezed, seen = squeeze(self._held), visible(self._held)
        start, size = len(self._held), self._size_of_known_tail(squeezed)
        while size:
            start -= 1
            size -= not self._held[start].isspace()
        if seen != squeezed and (size := self._size_of_known_tail(seen)):
            ((start_of_seen, _),) = in_full([(len(seen) - size, len(seen))], self._held, UNSEEN)
            start = min(start, start_of_seen)
        return start

    def _size_of_known_tail(self, text: str) -> int:
        return common_size(len(text), lambda size: text[len(text) - size :] in self._known)

    def _start_of_open_key(self) -> int:
        start = self._held.rfind("-----BEGIN ")
        return len(self._held) if start == -1 or _KEY_END.search(self._held, start) else start
