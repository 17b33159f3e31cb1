"""Runs that come again: one at a time, each knowing of the last, their records kept and removed."""
