"""What all wire APIs share: what one is, how its pieces become a message, how its failures are read."""
