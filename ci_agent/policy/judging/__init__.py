"""Facts held against rules: who grants, who forbids, and what is said about it."""
