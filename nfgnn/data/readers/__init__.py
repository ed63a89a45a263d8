"""One module per file format or published layout. A reader returns a graph before validation."""
