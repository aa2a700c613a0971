"""What stands on a page."""
