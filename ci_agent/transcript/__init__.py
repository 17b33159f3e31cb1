"""The record of a run: journal while it goes on, document when it has ended."""
