"""Connections to servers of models."""
