"""What can be tried, what was tried, and which of it is best."""
