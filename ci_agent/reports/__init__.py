"""A transcript rendered, one module for each format."""
