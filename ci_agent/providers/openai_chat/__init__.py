"""OpenAI Chat Completions, and everything that speaks it."""
