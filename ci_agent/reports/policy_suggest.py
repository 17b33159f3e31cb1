"""Suggested rules as YAML that can be pasted, everything else in comments; and the same for a program."""

from collections.abc import Iterable, Iterator, Sequence

from ci_agent.call_summary import summarise_arguments
from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.recorded import RecordedCall, SkippedCall
from ci_agent.policy.own_tests import describe_call
from ci_agent.policy.suggest import Extension, NotSuggested, Suggestion, Suggestions
from ci_agent.policy.suggest.cautions import caution_for
from ci_agent.reports.policy_replay import render_skipped, skipped_json
from ci_agent.spelling import counted, listed
from ci_agent.terminal import printable, shortened

_MAX_CHARS = 200
_MAX_EVIDENCE = 10


def render_suggestions(
    place: str, found: Suggestions, skipped: Sequence[SkippedCall], notes: Iterable[str] = ()
) -> str:
    """Items of `rules:` with comments; every line that is not a part of a rule begins with `#`, `notes` too.

    `place`: the file that they are for.
    """
    lines = [_headline(place, found)]
    if found.extension is not None:
        lines += _extension_lines(found.extension)
    for suggestion in found.suggestions:
        lines += ["", *_comments(suggestion), suggestion.yaml]
    return "\n".join([*lines, "", *_rest(found, skipped), *(f"# {note}" for note in notes)])


def suggestions_json(found: Suggestions, skipped: Sequence[SkippedCall]) -> JsonObject:
    """The same for a program."""
    return {
        "suggestions": [_suggestion_json(suggestion) for suggestion in found.suggestions],
        "not_suggested": [
            {**_call_json(each.call), "code": each.code, "reason": each.why} for each in found.not_suggested
        ],
        "extends": found.extension
        and {
            "policy": found.extension.policy,
            "evidence": [_call_json(call) for call in found.extension.calls],
        },
        "already_allowed": [_call_json(call) for call in found.already_allowed],
        "skipped": [skipped_json(call) for call in skipped],
    }


def _headline(place: str, found: Suggestions) -> str:
    if not found.suggestions:
        return "# no rule to suggest"
    helped = {(call.transcript, call.seq) for suggestion in found.suggestions for call in suggestion.calls}
    rules, calls = counted(len(found.suggestions), "rule"), counted(len(helped), "denied call")
    what = "as narrow as they can be: what you want of them goes beneath `rules:`"
    return f"# {rules} for {calls}, {what} in {printable(place)}"


def _extension_lines(extension: Extension) -> list[str]:
    allows = f"`extends: [{extension.policy}]` allows {len(extension.calls)} of these calls"
    return [
        f"# or, wider: {allows} ({_places(extension.calls)})",
        f"#   with all that it allows and forbids besides: ci-agent policy show {extension.policy}",
    ]


def _comments(suggestion: Suggestion) -> Iterator[str]:
    yield f"  # denied: {_places(suggestion.calls)}"
    if caution := caution_for(suggestion.rule):
        yield f"  # caution: {caution}"
    for glob in (*(suggestion.rule.path or ()), *(suggestion.rule.paths or ())):
        if glob.startswith("/"):
            yield f"  # outside the workspace: {_short(glob)}"
    for witness in suggestion.also_allows:
        yield f"  # also allows: {_short(describe_call(witness.tool, witness.arguments))}"
    for finding in suggestion.findings:
        witness_text = finding.witness and describe_call(finding.witness.tool, finding.witness.arguments)
        example = f" (for example {_short(witness_text)})" if witness_text else ""
        yield f"  # {finding.severity}: {printable(finding.message)}{example} [{finding.code}]"


def _rest(found: Suggestions, skipped: Sequence[SkippedCall]) -> Iterator[str]:
    if found.not_suggested:
        yield "# not suggested:"
    for each in found.not_suggested:
        yield f"#   {_place(each.call)}  {_what(each)}  {each.code}: {_short(each.why)}"
    if found.already_allowed:
        yield f"# allowed by the policy already: {_places(found.already_allowed)}"
    if skipped:
        yield f"# left out: {render_skipped(skipped)}"


def _what(each: NotSuggested) -> str:
    return f"{printable(each.call.tool)}  {summarise_arguments(each.call.arguments, '')}"


def _places(calls: Sequence[RecordedCall]) -> str:
    return listed(list(map(_place, calls)), _MAX_EVIDENCE)


def _place(call: RecordedCall) -> str:
    return f"{printable(call.transcript)} #{call.seq}"


def _short(text: str) -> str:
    return shortened(printable(text), _MAX_CHARS)


def _suggestion_json(suggestion: Suggestion) -> JsonObject:
    return {
        "rule_id": suggestion.rule.id,
        "yaml": suggestion.yaml,
        "caution": caution_for(suggestion.rule),
        "evidence": [_call_json(call) for call in suggestion.calls],
        "also_allows": [{"tool": call.tool, "args": call.arguments} for call in suggestion.also_allows],
        "findings": [
            {"severity": finding.severity, "code": finding.code, "message": finding.message}
            for finding in suggestion.findings
        ],
    }


def _call_json(call: RecordedCall) -> JsonObject:
    return {"transcript": call.transcript, "seq": call.seq, "tool": call.tool, "args": call.arguments}
