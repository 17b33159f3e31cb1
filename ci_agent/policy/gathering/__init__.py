"""From a call to its facts: what it would run, read, write and reach."""
