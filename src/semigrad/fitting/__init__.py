"""Own data in one command: look at them, plan within a time, compare with labeled-only on labels held out, train."""
