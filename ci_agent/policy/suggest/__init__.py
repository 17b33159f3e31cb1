"""From denied calls to the narrowest rules that would allow them: candidates for a person, never installed."""

from ci_agent.policy.suggest.extensions import Extension
from ci_agent.policy.suggest.suggest import NotSuggested, Suggestion, Suggestions, smallest_rules, suggest_rules

__all__ = ["Extension", "NotSuggested", "Suggestion", "Suggestions", "smallest_rules", "suggest_rules"]
