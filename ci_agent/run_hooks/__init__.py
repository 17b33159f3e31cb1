"""What a run hangs into the loop: its policy, its limits, the shape of its answer."""
