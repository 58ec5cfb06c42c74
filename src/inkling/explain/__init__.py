"""Why: where along a text a model is surprised."""
