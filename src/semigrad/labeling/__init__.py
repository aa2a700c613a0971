"""What to label next, and answers put back into the labels."""
