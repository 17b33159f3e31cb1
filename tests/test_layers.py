"""The map of the house: who may import whom. Imports point strictly downwards."""

import ast
import re
from pathlib import Path

import pytest

import ci_agent

PACKAGE = Path(ci_agent.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("json_types",),
    ("cancellation", "errors", "messages", "secret_names", "spelling", "steering_names", "urls"),
    ("exit_codes", "own_environment", "terminal", "text_files", "tool", "workspace"),
    ("chosen_workspace", "git_files", "github_event", "hooks", "prompts", "provider", "sandbox", "strict_yaml"),
    ("call_summary", "events", "spawn"),
    ("agent", "process"),
    ("policy", "providers", "tools", "transcript"),
    ("output_schema", "proposals", "reports"),
    (
        "ci_services",
        "confined_commands",
        "precautions",
        "progress",
        "replay",
        "run_hooks",
        "schedule",
        "signals",
        "tracing",
    ),
    ("command_parts", "explain", "ready_policy", "recorded_runs", "run_settings", "tasks"),
    ("ending", "readiness", "run_parts", "starter"),
    ("run_precautions", "run_start"),
    ("hooked_loop",),
    ("compose",),
    ("cli",),
    ("__main__",),
)
"""From the bottom. A module imports from layers below its own, and inside its own package; a package counts as
one. `agent` is held to more: see its test."""

AGENT_MAY_IMPORT = {
    "errors",
    "json_types",
    "cancellation",
    "messages",
    "tool",
    "provider",
    "hooks",
    "events",
    "spelling",
    "agent",
}

POLICY_LAYERS: tuple[tuple[str, ...], ...] = (
    ("words",),
    ("edited", "effects", "matchers"),
    ("proposal_bounds", "shell"),
    ("disk", "programs", "rules"),
    ("file", "protected"),
    ("facts", "own_tests"),
    ("compiled", "describe", "lint"),
    ("gathering",),
    ("judging",),
    ("decide",),
    ("call_access", "counting", "variants"),
    ("checks",),
    ("suggest",),
)
"""The same inside of `policy`."""

LAYER_OF = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
POLICY_LAYER_OF = {room: level for level, rooms in enumerate(POLICY_LAYERS) for room in rooms}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ci_agent."):
            rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "ci_agent":
            rooms.update(alias.name for alias in node.names if alias.name in LAYER_OF)
        elif isinstance(node, ast.Import):
            rooms.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ci_agent."))
    return rooms


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_imports_only_from_layers_below_its_own(path: Path) -> None:
    room = room_of(path)
    assert room in LAYER_OF, f"give {room} its place in LAYERS"
    upwards = {other for other in imported_rooms(path) - {room} if LAYER_OF[other] >= LAYER_OF[room]}
    assert upwards == set()


def test_every_room_of_the_map_exists() -> None:
    existing = {room_of(path) for path in modules()}
    assert set(LAYER_OF) - existing == set()


def policy_modules() -> list[Path]:
    folder = PACKAGE / "policy"
    return sorted(path for path in folder.rglob("*.py") if path != folder / "__init__.py")


def policy_room_of(path: Path) -> str:
    return path.relative_to(PACKAGE / "policy").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", policy_modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_of_the_policy_imports_only_from_layers_below_its_own(path: Path) -> None:
    room = policy_room_of(path)
    assert room in POLICY_LAYER_OF, f"give {room} its place in POLICY_LAYERS"
    imported = set(re.findall(r"^\s*from ci_agent\.policy\.(\w+)", path.read_text(), re.MULTILINE)) - {room}
    assert "from ci_agent.policy import" not in path.read_text()
    assert {other for other in imported if POLICY_LAYER_OF[other] >= POLICY_LAYER_OF[room]} == set()


def test_every_room_of_the_policy_exists() -> None:
    assert set(POLICY_LAYER_OF) == {policy_room_of(path) for path in policy_modules()}


def test_the_page_of_the_house_shows_every_room_where_it_is() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", page, re.MULTILINE)
    shown = {name: int(level) for level, names in rows for name in re.findall(r"`(\w+)/?`", names)}
    assert shown == LAYER_OF


def test_the_loop_knows_no_policy_tool_or_provider() -> None:
    imported = {room for path in (PACKAGE / "agent").rglob("*.py") for room in imported_rooms(path)}
    assert imported - AGENT_MAY_IMPORT == set()
