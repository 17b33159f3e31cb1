"""Calls made hostile: what a policy must go on denying, derived from the calls that it is meant for."""

from ci_agent.policy.variants.trial import VariantResult, try_variants
from ci_agent.policy.variants.variant import Trick

__all__ = ["Trick", "VariantResult", "try_variants"]
