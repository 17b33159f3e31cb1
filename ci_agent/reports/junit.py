"""A transcript as JUnit's XML, for the pages on which CI systems show tests: a suite for the run, a case for each call.

Names say what was called and stay the same from run to run, so that Jenkins and GitLab follow a call through them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.reports.calls import (
    arguments_of,
    counts_of,
    decided_by,
    failing_calls,
    how_it_ended,
    result_text,
    tool_name,
    what_went_wrong,
)
from ci_agent.reports.outcome import caveats, conclusion, next_steps, usage_text, why_it_ended
from ci_agent.terminal import inert_lines

_ELEMENTS: Final = {"denied": "failure", "error": "error", "unknown": "error", "cancelled": "skipped"}
_IN_A_GOOD_RUN: Final = _ELEMENTS | {"denied": "skipped", "error": "system-out", "unknown": "skipped"}
"""Servers make a build unstable or failed for one case that is not green: a run whose exit code says that all is well
must not do that. What was denied was not run, which is what skipped means; its message stays in sight."""

_SUITE: Final = "ci-agent"
_THE_RUN: Final = "the run comes to its end"

_MAX_ANSWER_CHARS = 100_000
_MAX_RESULT_CHARS = 4_000


def render_junit(document: JsonObject) -> str:
    """XML 1.0 in UTF-8, whose texts hold no character that it forbids."""
    suite = _suite_attributes(document)
    whole = {name: suite[name] for name in ("name", "tests", "failures", "errors", "time")}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        _tag("testsuites", whole),
        _tag("testsuite", suite),
        *_run_case(document),
        *_call_cases(document["tool_calls"], _elements(document)),
        _element("system-out", {}, _summary(document)),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite_attributes(document: JsonObject) -> dict[str, object]:
    run, calls = document["run"], document["tool_calls"]
    elements = _elements(document)
    seen = Counter(elements.get(call["status"]) for call in calls)
    of_the_run = sum(1 for _ in _run_case(document))
    attributes: dict[str, object] = {
        "name": _SUITE,
        "tests": len(calls) + of_the_run,
        "failures": seen["failure"],
        "errors": seen["error"] + (of_the_run if _run_failed(document) else 0),
        "skipped": seen["skipped"],
        "time": _seconds(run and run["duration_s"]),
    }
    return attributes | ({} if run is None else {"timestamp": run["started_at"]})


def _seconds(duration_s: float | None) -> str:
    return f"{duration_s or 0:.3f}"


def _run_case(document: JsonObject) -> Iterator[str]:
    """A case for the run itself, where the calls do not tell how it ended: a report without a case, or one in which all
    is green, would hide a failure. An empty one is an error to Jenkins."""
    failed = _run_failed(document)
    if not failed and document["tool_calls"]:
        return
    names = {"classname": _SUITE, "name": _THE_RUN, "time": _seconds(None)}
    told = "\n".join(filter(None, (why_it_ended(document), *next_steps(document))))
    message = {"message": _attribute(conclusion(document)), "type": document["result"]["reason"]}
    yield _element("testcase", names, body=_element("error", message, told) if failed else "")


def _run_failed(document: JsonObject) -> bool:
    """Whether it failed for something that no call shows."""
    return document["result"]["exit_code"] != 0 and not failing_calls(document)


def _elements(document: JsonObject) -> Mapping[str, str]:
    """What a case holds, by the status of its call; of one that is not named it holds nothing."""
    return _IN_A_GOOD_RUN if document["result"]["exit_code"] == 0 else _ELEMENTS


def _call_cases(calls: Sequence[JsonObject], elements: Mapping[str, str]) -> Iterator[str]:
    seen: Counter[tuple[str, str]] = Counter()
    for call in calls:
        what = (tool_name(call), arguments_of(call))
        seen[what] += 1
        repeated = f" ({seen[what]})" if seen[what] > 1 else ""
        names = {
            # Jenkins takes what is before the last dot for a package.
            "classname": f"{_SUITE}.{tool_name(call).replace('.', '_')}",
            "name": f"{tool_name(call)} {arguments_of(call)}{repeated}",
            "time": _seconds(call["duration_s"]),
        }
        yield _element("testcase", names, body=_outcome(call, elements.get(call["status"])))


def _outcome(call: JsonObject, name: str | None) -> str:
    if name is None:
        return ""
    if name == "skipped":
        denied = f"denied {decided_by(call)}: " if call["status"] == "denied" else ""
        return _tag(name, {"message": _attribute(f"{denied}{what_went_wrong(call)}")}, closed=True)
    told = f"call {call['seq']}, turn {call['turn']}: {how_it_ended(call)}"
    printed = result_text(call)
    shown = "" if call["status"] == "denied" else f"\n{printed[-_MAX_RESULT_CHARS:]}"
    if name == "system-out":
        return _element(name, {}, f"{told}{shown}")
    kind = decided_by(call)
    return _element(name, {"message": _attribute(what_went_wrong(call)), "type": _attribute(kind)}, f"{told}{shown}")


def _summary(document: JsonObject) -> str:
    """What is seen beside the cases: the outcome and the answer."""
    answer = document["result"]["final_text"]
    shown = "No answer" if answer is None else answer[:_MAX_ANSWER_CHARS]
    cut = f"\n(cut: it has {len(answer):,} characters)" if answer and len(answer) > _MAX_ANSWER_CHARS else ""
    counts = counts_of(document["tool_calls"]) or "no calls"
    told = "\n".join([conclusion(document), *caveats(document)])
    return f"{told}\n{counts}; {usage_text(document['usage'])}\n\n{shown}{cut}"


def _element(name: str, attributes: Mapping[str, object], text: str = "", *, body: str = "") -> str:
    """With `text`, which may be anybody's, or a `body` that is XML already; without either it closes itself."""
    if not text and not body:
        return _tag(name, attributes, closed=True)
    return f"{_tag(name, attributes)}{body or escape(inert_lines(text), quote=False)}</{name}>"


def _tag(name: str, attributes: Mapping[str, object], *, closed: bool = False) -> str:
    told = "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{told}{'/' if closed else ''}>"


def _attribute(text: str) -> str:
    return text or "no reason given"
