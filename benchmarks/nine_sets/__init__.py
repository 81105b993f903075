"""What one command gives on nine data sets, beside what a user would do otherwise."""
