"""What it is worth on people never seen, on real recordings."""
