"""What CI services say of themselves to a run, and what a run says to them."""
