"""The command line: words in, tables out. Nothing is computed here."""
