"""Statements about all of the above that anyone can run."""
