"""The attention laboratory: exact forms, simulations that confirm them, and constructions by hand."""
