"""What a policy allows although nobody may have meant it, and what it says without effect; each shown by a call."""

from ci_agent.policy.lint.finding import LintCode, LintFinding, Severity, Witness
from ci_agent.policy.lint.lint import lint_policy

__all__ = ["LintCode", "LintFinding", "Severity", "Witness", "lint_policy"]
