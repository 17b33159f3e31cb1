"""What a run wants done outside: proposed into a file by the agent, applied by a job that has no model."""
