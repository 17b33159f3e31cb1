"""The input `extra-args` as words that a shell reads back as they are."""

import json
import os
import shlex
import sys

WANTED = 'is no JSON list of texts, such as ["--thinking", "high"]'

try:
    words = json.loads(os.environ["INPUT_EXTRA_ARGS"] or "[]")
except (ValueError, RecursionError) as error:
    sys.exit(f"{WANTED}: {error}")
if not isinstance(words, list) or not all(isinstance(word, str) and "\0" not in word for word in words):
    sys.exit(WANTED)
print(shlex.join(words))
