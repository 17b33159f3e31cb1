from policy_calls import MakePolicy

from ci_agent.cancellation import CancelToken
from ci_agent.hooks import Decision, ProposedToolCall
from ci_agent.json_types import JsonObject
from ci_agent.messages import ToolCall
from ci_agent.policy.counting import CallCounter, create_before_tool_call
from ci_agent.tool import OnUpdate, Tool, ToolResult


def effects(counter: CallCounter, *commands: str) -> list[str]:
    return [counter.decide("bash", {"command": command}).effect for command in commands]


def test_a_rule_allows_so_many_calls_and_no_more(policy: MakePolicy) -> None:
    decided = policy(
        '- {id: test, allow: bash, command: "npm test", max_calls: 2, instead: read the last result, on_denied: fail}\n'
    )
    counter = CallCounter(decided)
    assert effects(counter, "npm test", "npm test") == ["allow", "allow"]
    decision = counter.decide("bash", {"command": "npm test"})
    assert (decision.effect, decision.code, decision.rule_id, decision.on_denied) == ("deny", "limit", "test", "fail")
    assert decision.reason == (
        "Blocked: policy rule test allows 2 calls, and no more are left. Instead: read the last result"
    )


def test_denied_calls_are_not_counted(policy: MakePolicy) -> None:
    counter = CallCounter(policy('- {id: test, allow: bash, command: "npm test", max_calls: 1}\n'))
    assert effects(counter, "npm test; id", "npm test 'x", "npm test", "npm test") == ["deny", "deny", "allow", "deny"]


def test_a_call_counts_once_however_often_it_runs_the_command(policy: MakePolicy) -> None:
    counter = CallCounter(policy('- {id: test, allow: bash, command: "npm test", max_calls: 2}\n'))
    assert effects(counter, "npm test; npm test; npm test", "npm test", "npm test") == ["allow", "allow", "deny"]


def test_a_rule_without_a_count_is_used_first(policy: MakePolicy) -> None:
    counter = CallCounter(
        policy(
            """
            - {id: a-counted, allow: bash, command: "npm **", max_calls: 1}
            - {id: free, allow: bash, command: "npm test"}
            """
        )
    )
    assert effects(counter, "npm test", "npm test", "npm ci", "npm test", "npm ci") == ["allow"] * 4 + ["deny"]


def test_another_rule_takes_over_when_one_is_used_up(policy: MakePolicy) -> None:
    counter = CallCounter(
        policy(
            """
            - {id: one, allow: bash, command: "npm **", max_calls: 1}
            - {id: two, allow: bash, command: "npm test", max_calls: 1}
            """
        )
    )
    assert effects(counter, "npm test", "npm test", "npm test") == ["allow", "allow", "deny"]


def test_a_deny_rule_is_not_hidden_by_a_limit(policy: MakePolicy) -> None:
    counter = CallCounter(
        policy(
            """
            - {id: read, allow: read, max_calls: 1}
            - {id: secret, deny: read, path: .env}
            """
        )
    )
    first, second = (counter.decide("read", {"path": path}) for path in ("a", ".env"))
    assert (first.effect, second.rule_id, second.code) == ("allow", "secret", "rule")


def test_rules_that_count_are_found_in_a_call_of_hundreds_of_facts(policy: MakePolicy) -> None:
    counter = CallCounter(
        policy(
            """
            - {id: get, allow: bash, command: "curl **", host: a.test}
            - {id: once, allow: bash, command: "npm test", max_calls: 1}
            """
        )
    )
    command = "curl " + " ".join(f"https://a.test/{number}" for number in range(900)) + "; npm test"
    assert effects(counter, command, command) == ["allow", "deny"]


def test_the_hook_decides_by_the_name_of_the_tool_and_counts(policy: MakePolicy) -> None:
    def execute(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        raise NotImplementedError

    def propose(name: str, arguments: JsonObject) -> Decision | None:
        return hook(ProposedToolCall(ToolCall("1", name, "{}"), Tool(name, "", {}, execute), arguments))

    hook = create_before_tool_call(policy("- {id: once, allow: read, max_calls: 1}\n"))
    decisions = [propose("write", {"path": "a"}), propose("read", {"path": "a"}), propose("read", {"path": "a"})]
    assert [decision and decision.code for decision in decisions] == ["default", "rule", "limit"]
