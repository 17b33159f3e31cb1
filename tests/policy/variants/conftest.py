from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.policy.variants import VariantResult, try_variants
from ci_agent.workspace import open_workspace

Try: TypeAlias = Callable[..., list[VariantResult]]
MakePolicy: TypeAlias = Callable[..., Policy]


@pytest.fixture
def policy(tmp_path: Path) -> MakePolicy:
    """`policy(text, **seams)`: a policy of these rules and tests, in an empty workspace beside a home folder."""
    for name in ("work", "home"):
        (tmp_path / name).mkdir()

    def make(text: str, **seams: Any) -> Policy:
        source = load_policy_source(text=f"policy: 1\n{text}")
        around = Surroundings(home=tmp_path / "home")
        return compile_policy(source, open_workspace(tmp_path / "work"), around=around, **seams)

    return make


@pytest.fixture
def variants(policy: MakePolicy) -> Try:
    """`variants(text, **seams)`: the variants of such a policy, tried."""
    return lambda text, **seams: list(try_variants(policy(text, **seams)))
