"""Serves a GGUF file over Chat Completions on this machine, until its stdin ends: `serve.py MODEL TEMPLATE`.

Prints the address once it answers.
"""

import sys
from pathlib import Path

import xllamacpp


def main(model: str, template: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    params.chat_template = Path(template).read_text()
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # threads that wait for each other on a busy machine make it a hundred times slower
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
