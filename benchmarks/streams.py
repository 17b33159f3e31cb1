"""How fast a streamed answer is read: ours against the OpenAI SDK's parser on the same bytes, and cost per delta.

    python benchmarks/streams.py [--sdk-python PATH]

`PATH` is an interpreter that has the package `openai`; without one it is looked for here, and else left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ci_agent.providers.assembly import Assembly
from ci_agent.providers.openai_chat_response import read_stream

SIZE_BYTES = 10_000_000
NETWORK_READ = 16_384
TIMES = 3

SDK = """
import sys, time
try:
    import httpx2 as httpx
except ImportError:
    import httpx
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk
from openai._streaming import Stream

body = open(sys.argv[1], "rb").read()
size = int(sys.argv[2])

class Body(httpx.SyncByteStream):
    def __iter__(self):
        for i in range(0, len(body), size):
            yield body[i : i + size]

client = OpenAI(api_key="none")

def once():
    request = httpx.Request("POST", "http://localhost/")
    response = httpx.Response(200, stream=Body(), request=request)
    start = time.perf_counter()
    text = []
    for chunk in Stream(cast_to=ChatCompletionChunk, response=response, client=client):
        for choice in chunk.choices:
            text.append(choice.delta.content or "")
    "".join(text)
    return time.perf_counter() - start

print(min(once() for _ in range(3)))
"""


def chat_stream(deltas: int) -> bytes:
    """As a server sends it, with the fields that every chunk repeats."""
    head = {
        "id": "chatcmpl-x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "f",
    }
    chunks = [
        head | {"choices": [{"index": 0, "delta": {"content": f"word{n} "}, "logprobs": None, "finish_reason": None}]}
        for n in range(deltas)
    ]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + NETWORK_READ] for start in range(0, len(body), NETWORK_READ))


def read_ours(body: bytes) -> None:
    assembly = Assembly()
    for _ in read_stream(pieces(body), assembly):
        pass
    assert assembly.stop_reason == "stop"


def parse_alone(body: bytes) -> None:
    for line in body.split(b"\n"):
        if line.startswith(b"data: {"):
            json.loads(line[6:])


def best(work: Callable[[bytes], None], body: bytes) -> float:
    return min(_seconds(work, body) for _ in range(TIMES))


def _seconds(work: Callable[[bytes], None], body: bytes) -> float:
    start = time.perf_counter()
    work(body)
    return time.perf_counter() - start


def sdk_seconds(python: str, body: bytes) -> float | None:
    """The OpenAI SDK's own reading of the same bytes; None: this interpreter does not have it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body"
        path.write_bytes(body)
        done = subprocess.run(
            [python, "-c", SDK, str(path), str(NETWORK_READ)], capture_output=True, text=True, check=False
        )
    return float(done.stdout) if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast a streamed answer is read.")
    parser.add_argument("--sdk-python", default=sys.executable, help="an interpreter that has the package openai")
    python = parser.parse_args().sdk_python
    deltas = SIZE_BYTES // (len(chat_stream(1000)) // 1000)
    body = chat_stream(deltas)
    ours, alone, theirs = best(read_ours, body), best(parse_alone, body), sdk_seconds(python, body)
    print(f"{len(body) / 1e6:.1f} MB of Chat Completions in {deltas:,} deltas")
    print(f"  ours, read and assembled  {ours:6.2f} s  {len(body) / 1e6 / ours:6.1f} MB/s")
    print(f"  json.loads alone          {alone:6.2f} s")
    if theirs is None:
        print("  the OpenAI SDK is not there (give --sdk-python)")
    else:
        print(f"  the OpenAI SDK's stream   {theirs:6.2f} s  {theirs / ours:6.1f} times ours")
    few, many = best(read_ours, chat_stream(10_000)), best(read_ours, chat_stream(100_000))
    print(f"100,000 deltas take {many / few:.1f} times as long as 10,000 (at most 13)")


if __name__ == "__main__":
    main()
