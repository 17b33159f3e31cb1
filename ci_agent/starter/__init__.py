"""The files that `ci-agent init` writes."""
