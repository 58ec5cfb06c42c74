"""Bytes, encodings, rows, normalisation, tokenisers, word vectors, data sets. Never a model."""
