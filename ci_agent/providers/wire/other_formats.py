"""Tells an error object and another API's answer apart from what was expected at an endpoint."""

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.errors_on_wire import error_from_object
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.untrusted_json import text_at


def refuse_other_formats(endpoint: str, kind: str, data: JsonObject) -> None:
    """Raise ApiError for an error, whatever its event is called, and for the format of Chat Completions."""
    if kind == "error" or data.get("error"):
        raise error_from_object(data, status=None)
    if "choices" in data or text_at(data, "object").startswith("chat.completion"):
        advice = "choose an openai-chat provider, or another --base-url"
        problem = f"the server answered {endpoint} in the format of Chat Completions: {advice}"
        raise ApiError("malformed", problem, retryable=False)
