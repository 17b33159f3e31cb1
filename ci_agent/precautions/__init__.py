"""What commands can get hold of although no tool gives it to them: found, watched, taken away."""
