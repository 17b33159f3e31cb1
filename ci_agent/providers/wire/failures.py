"""Why a request to a model failed, in the words that decide what happens next."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

FailureKind: TypeAlias = Literal[
    "auth",
    "bad_call",
    "connection",
    "empty",
    "malformed",
    "overflow",
    "overloaded",
    "quota",
    "rate_limit",
    "refused",
    "request",
    "server",
    "timeout",
    "truncated",
]
"""`auth`: the key is wrong or may not. `bad_call`: the server could not read the call that its own model made.
`connection`: never reached, or cut. `empty`: an answer that says nothing. `malformed`: not the protocol. `overflow`:
the request is too long for the model. `quota`: used up, waiting will not help. `refused`: the model or a filter
declined. `request`: the server will never take it as it is. `truncated`: the stream ended before its end."""


@dataclass(eq=False)
class ApiError(Exception):
    """Raised inside this package alone; a stream function turns it into a `StreamFailed`."""

    kind: FailureKind
    message: str
    """What happened, for a person: one line, no key in it, no page of HTML."""
    retryable: bool
    """Whether the same request may succeed later."""
    retry_after_s: float | None = None
    """How long the server asked to wait; None: it did not say."""
    status: int | None = None
    """HTTP status, or the one that an error in a stream stands for; None: there is none."""
    nobody_listens: bool = False
    """The connection was refused: nothing was sent."""
    may_be_starting_s: float = 0.0
    """How long a server on this machine is waited for, whatever the number of attempts."""

    def __str__(self) -> str:
        return self.message
