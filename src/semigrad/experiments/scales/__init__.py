"""Every experiment at every scale."""
