"""The agent loop: mechanism without policy."""
