"""Which runs make a table."""
