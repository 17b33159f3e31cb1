"""A policy tried before it is trusted: its tests, its examples, and calls of earlier runs."""
