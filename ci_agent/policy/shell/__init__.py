"""Bash text to the simple commands that bash would run, or a refusal."""
