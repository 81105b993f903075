"""Recordings in files and BIDS folders, cut into trials by MNE."""
