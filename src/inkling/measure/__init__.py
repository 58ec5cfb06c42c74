"""Sums and denominators: perplexity, bits per byte, intervals, paired tests. Never how a model works."""
