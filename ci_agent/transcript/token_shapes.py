"""Tokens that anybody recognises by their shape, known beforehand or not."""

import re

Span = tuple[int, int]
"""Start and end in a text, in characters."""


def find_tokens(text: str) -> list[Span]:
    """Where well-known tokens stand, shape by shape."""
    return [found.span() for mark, shape in SHAPES if mark in text for found in re.finditer(shape, text)]


def _beginning(mark: str) -> str:
    # Not inside a word; but right after the `m` that ends a colour code is a beginning too. The mark is matched
    # before it is looked back from, because literal text is found fast.
    return rf"{mark}(?:(?<![A-Za-z0-9_-]{mark})|(?<=[\d;\[]m{mark}))"


_BETWEEN_LINES = r"(?:\\[nrt]|[\s\"',|>+:]|(?<=\s)[-0-9]+[\t|:]){0,60}"
"""Between two lines of a key: line ends (escaped ones too), line numbers, diff marks, quotes."""

_KEY_LINE = r"(?:[A-Za-z-]{4,20}: [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,}+)"

_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_BETWEEN_LINES}{_KEY_LINE})*"
    rf"(?:{_BETWEEN_LINES}[A-Za-z0-9+/=]{{0,15}}+{_BETWEEN_LINES}"
    r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)

SHAPES: tuple[tuple[str, str], ...] = (
    ("gh", r"gh[pousr]_[A-Za-z0-9_]{30,1024}+(?:\.[A-Za-z0-9_-]{8,1024}+){0,2}"),  # GitHub
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    # base64 of `x-access-token:`, as actions/checkout leaves it in .git/config
    ("eC1hY2Nlc3MtdG9rZW46", r"eC1hY2Nlc3MtdG9rZW46[A-Za-z0-9+/=]{8,1024}+"),
    ("glpat-", r"glpat-[A-Za-z0-9_-]{20,255}+"),  # GitLab
    # OpenAI, Anthropic and others
    ("sk-", _beginning("sk-") + r"(?=[A-Za-z0-9_-]{0,60}?[A-Za-z0-9]{16})[A-Za-z0-9_-]{20,255}+"),
    ("k_live_", r"[rs]k_live_[A-Za-z0-9]{16,255}+"),  # Stripe
    ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}+"),  # Slack
    ("xapp-", r"xapp-[A-Za-z0-9-]{10,255}+"),
    ("AKIA", r"AKIA(?<![A-Z0-9]AKIA)[A-Z0-9]{16}(?![A-Z0-9])"),  # AWS
    ("ASIA", r"ASIA(?<![A-Z0-9]ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("AIza", r"AIza[A-Za-z0-9_-]{35}"),  # Google
    ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,2048}+"),
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-", r"pypi-AgE[A-Za-z0-9_-]{50,2048}+"),
    ("hf_", _beginning("hf_") + r"[A-Za-z0-9]{30,64}+"),  # Hugging Face
    # JSON Web Token
    ("eyJ", _beginning("eyJ") + r"[A-Za-z0-9_-]{8,4096}+\.eyJ[A-Za-z0-9_-]{8,4096}+\.[A-Za-z0-9_-]{8,4096}+"),
    ("PRIVATE KEY", _PEM),
)
"""Text that a shape cannot do without, cheap to look for, and its pattern. Compiled by `re` when first needed: most
runs never see one. Every pattern is linear, or quadratic within a small bound; only character classes are possessive,
because groups that are match wrongly before Python 3.11.5."""
