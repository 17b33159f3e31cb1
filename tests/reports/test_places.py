"""What points to a file is named from the top of the repository, wherever workspace and policy lie in it."""

from typing import Any

import pytest

from ci_agent.reports.places import Place, place_of

RUN = {"workspace": "/srv/site/app", "checkout": {"root": "/srv/site", "started_in": "/srv/site/ci"}}
OLD = {"workspace": "/srv/site"}


@pytest.mark.parametrize(
    ("run", "source", "place"),
    [
        (RUN, "policy.yml:7", Place("ci/policy.yml", 7)),
        (RUN, "../policy.yml:7", Place("policy.yml", 7)),
        (RUN, "/srv/site/app/policy.yml:7", Place("app/policy.yml", 7)),
        (RUN, "../../policy.yml:7", None),
        (RUN, "/etc/policy.yml:7", None),
        (RUN, "git:origin/main:tasks/policy.yml:7", Place("tasks/policy.yml", 7)),
        (RUN, "git:HEAD~1:../policy.yml:7", None),
        (RUN, "shipped/review.yml:7", None),
        (OLD, "policy.yml:7", Place("policy.yml", 7)),
        (OLD | {"checkout": None}, "policy.yml:7", Place("policy.yml", 7)),
        (None, "policy.yml:7", None),
    ],
)
def test_a_denial_points_to_its_rule(run: Any, source: str, place: Place | None, records: Any) -> None:
    decided = records.decision("deny", "rule", "Blocked", "r", source)
    assert place_of(records.call(1, "bash", {}, "denied", "", decision=decided), run) == place


@pytest.mark.parametrize(
    ("run", "path", "place"),
    [
        (RUN, "src/a.py", Place("app/src/a.py", 9)),
        (RUN, "../README.md", Place("README.md", 9)),
        (RUN, "/srv/site/app/a.py", Place("app/a.py", 9)),
        (RUN, "../../a.py", None),
        (RUN, "..", None),
        (OLD, "src/a.py", Place("src/a.py", 9)),
    ],
)
def test_a_failed_call_points_to_its_file(run: Any, path: str, place: Place | None, records: Any) -> None:
    assert place_of(records.call(1, "read", {"path": path, "offset": 9}, "error", "gone"), run) == place
