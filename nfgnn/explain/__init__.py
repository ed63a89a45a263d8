"""Records become tables and figures: in every file first the rows as plain data, then the ink."""
