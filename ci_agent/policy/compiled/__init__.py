"""Rules compiled: their matchers parsed once, and found without trying all of them."""
