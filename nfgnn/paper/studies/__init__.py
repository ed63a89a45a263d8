"""Studies beyond the tables and figures of the paper, one module each."""
