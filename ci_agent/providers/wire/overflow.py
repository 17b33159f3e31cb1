"""How servers say that a request is longer than the model can take."""

import re

_NOT_ABOUT_LENGTH = re.compile(
    r"rate.?limit|too many requests|please wait|throttl|quota|per (?:second|minute|min|hour|day|month)|\btp[md]\b",
    re.IGNORECASE,
)
"""What also speaks of too many tokens, and means: within a time."""

_TOO_LONG = re.compile(
    "|".join(
        (
            r"prompt is too long",  # Anthropic
            r"prompt too long",  # Ollama
            r"context[_ ]length[_ ]exceeded|model_context_window_exceeded",
            r"exceeds? the (?:model's )?context window|context window exceeds limit",  # OpenAI, MiniMax
            r"maximum context length (?:is|of)|with \d+ maximum context length",  # OpenAI, OpenRouter, vLLM, Mistral
            r"longer than the model's context length",  # Together, vLLM
            r"input tokens exceed the configured limit",  # OpenAI
            r"input token count.{0,80}exceeds the maximum number of tokens",  # Gemini
            r"input is too long for requested model",  # Bedrock
            r"maximum prompt length is \d",  # xAI
            r"reduce the length of the messages",  # Groq
            r"exceeds? the available context size",  # llama.cpp
            r"greater than the context length",  # LM Studio
            r"request body too large",  # GitHub Models
            r"exceeds the limit of \d+",  # GitHub Copilot
            r"exceeded model token limit",  # Kimi
            r"current length is \d+ while limit is \d+",  # Cerebras
            r"`?inputs`? tokens \+ `?max_new_tokens`? must be",  # TGI
            r"too many tokens|token limit exceeded",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)

_LIMIT_AND_REQUEST = re.compile(r"limit:? (\d[\d,]{0,20}),? requested:? (\d[\d,]{0,20})", re.IGNORECASE)


def is_overflow(message: str) -> bool:
    """Whether this is the complaint of a server that was sent too much, and not of one that was asked too often."""
    numbers = _LIMIT_AND_REQUEST.search(message)
    if numbers and _count(numbers[2]) > _count(numbers[1]):
        return True  # a rate limit that one request alone exceeds: waiting cannot help
    return not _NOT_ABOUT_LENGTH.search(message) and bool(_TOO_LONG.search(message))


def _count(digits: str) -> int:
    return int(digits.replace(",", ""))
