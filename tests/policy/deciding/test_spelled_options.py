"""An option of consequence that a rule spells, with a wildcard for its value."""

import pytest
from policy_calls import MakePolicy


def _effect(policy: MakePolicy, pattern: str, command: str) -> str:
    rules = f"""
    - {{id: spelled, allow: bash, command: ["{pattern}", "git rev-parse **"], paths: [".", "**"]}}
    """
    return policy(rules).decide("bash", {"command": command}).effect


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("sort --output=* **", "sort --output=x a"),
        ("sort --output=x* **", 'for f in a b; do sort --output=x"$f" a; done'),
        ("go test -coverprofile=* **", "go test -coverprofile=out/c.out ./..."),
        ("terraform plan -out=*", "terraform plan -out=plan"),
        ("go build -ldflags=* **", "go build -ldflags='-s -w' ./cmd/app"),
        ("go build -ldflags=* **", 'go build -ldflags="-X main.commit=$(git rev-parse HEAD)" ./cmd/app'),
    ],
)
def test_its_name_stands_in_the_rule_as_a_whole(policy: MakePolicy, pattern: str, command: str) -> None:
    assert _effect(policy, pattern, command) == "allow"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("sort --out* **", "sort --output=x a"),
        ("sort -output=* **", "sort -output=x a"),
        ("sort --output=y* **", 'for f in a b; do sort --output=x"$f" a; done'),
        ("go test -c* **", "go test -coverprofile=c.out ./..."),
        ("go test * ./...", "go test -coverprofile=c.out ./..."),
        ("go test -coverprofile=out/* **", "go test -coverprofile=other ./..."),
        ("go test -coverprofile=* **", "go test -coverprofile=/etc/x ./..."),
        ("go test -coverprofile=* **", 'go test -coverprofile="$x" ./...'),
        ("go build -ldflags=* **", 'go build -ldflags="$x" ./cmd/app'),
        ("go build -ldflags=* **", "go build -ldflags=$(git rev-parse HEAD) -toolexec=x ./cmd/app"),
    ],
)
def test_no_wildcard_stands_for_a_part_of_its_name_or_for_what_is_not_known(
    policy: MakePolicy, pattern: str, command: str
) -> None:
    assert _effect(policy, pattern, command) == "deny"
