"""A run carried out: everything its first step needs, the steps, the loop around them, and what is measured."""
