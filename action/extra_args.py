"""The input `extra-args` as words that a shell reads back as they are."""

import json
import os
import shlex
import sys

words = json.loads(os.environ["INPUT_EXTRA_ARGS"] or "[]")
if not isinstance(words, list) or not all(isinstance(word, str) and "\0" not in word for word in words):
    sys.exit(1)
print(shlex.join(words))
