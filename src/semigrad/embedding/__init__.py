"""Features of a frozen network, computed once."""
