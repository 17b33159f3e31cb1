"""Output of a child in bounded memory: its beginning, its end, and the count of everything."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    head: bytes
    tail: bytes
    """Empty when `head` holds everything."""
    total_bytes: int
    total_newlines: int

    @property
    def omitted_bytes(self) -> int:
        """How much is missing between head and tail."""
        return self.total_bytes - len(self.head) - len(self.tail)

    @property
    def is_complete(self) -> bool:
        return self.omitted_bytes == 0


class HeadAndTail:
    """Takes any number of chunks and never holds more than its limits and a little."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._total_bytes = 0
        self._total_newlines = 0

    def append(self, chunk: bytes) -> None:
        self._total_bytes += len(chunk)
        self._total_newlines += chunk.count(b"\n")
        room = self._head_bytes - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cutting only when twice the limit is reached copies each byte once on average, however small the chunks.
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut_tail()

    def taken(self) -> Output:
        """What is held now; later chunks do not change it."""
        self._cut_tail()
        return Output(bytes(self._head), bytes(self._tail), self._total_bytes, self._total_newlines)

    def _cut_tail(self) -> None:
        del self._tail[: max(len(self._tail) - self._tail_bytes, 0)]
