"""The policy file: read strictly, checked, and turned into rules in plain data."""
