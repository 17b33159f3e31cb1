"""What the kernel enforces for every command that a tool starts, whatever the command is."""
