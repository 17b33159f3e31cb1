"""What a request costs."""

from ci_agent.messages import Usage
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts, Price, cost_usd

USAGE = Usage(input_tokens=800, output_tokens=100, cache_read_tokens=200, cache_write_tokens=50)


def test_each_kind_of_token_has_its_price() -> None:
    facts = ModelFacts(price=Price(3, 15, cache_read=0.3, cache_write=3.75))
    assert cost_usd(facts, USAGE) == (800 * 3 + 100 * 15 + 200 * 0.3 + 50 * 3.75) / 1e6


def test_cached_tokens_without_a_price_of_their_own_count_as_fresh() -> None:
    assert cost_usd(ModelFacts(price=Price(2, 10)), USAGE) == (1050 * 2 + 100 * 10) / 1e6


def test_an_unknown_price_is_none_and_never_zero() -> None:
    assert cost_usd(UNKNOWN_MODEL, USAGE) is None


def test_free_is_zero_and_not_unknown() -> None:
    assert cost_usd(ModelFacts(price=Price(0, 0)), USAGE) == 0.0


def test_a_long_request_costs_the_long_price_for_all_of_its_tokens() -> None:
    facts = ModelFacts(price=Price(1, 2), long_context_tokens=1049, long_context_price=Price(10, 20))
    assert cost_usd(facts, USAGE) == (1050 * 10 + 100 * 20) / 1e6
    assert cost_usd(facts, Usage(input_tokens=1049)) == 1049 / 1e6


def test_a_long_request_without_a_known_long_price_is_unknown() -> None:
    facts = ModelFacts(price=Price(1, 2), long_context_tokens=100)
    assert cost_usd(facts, USAGE) is None
