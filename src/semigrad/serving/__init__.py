"""A trained model as a small HTTP service."""
