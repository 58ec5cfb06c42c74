"""Models behind HTTP: completions, scores and verdicts for the clients that people already have."""
