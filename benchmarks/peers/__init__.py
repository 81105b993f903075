"""What others offer, on the same folds."""
