"""What is wrong with somebody's data."""
