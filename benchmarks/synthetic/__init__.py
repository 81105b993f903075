"""What is right where the right answer is known: data made by formula."""
