"""The policy: a YAML file becomes a pure function from a call to a decision."""
