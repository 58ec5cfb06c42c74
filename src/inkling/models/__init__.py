"""Parameters and the functions of them, each model readable on its own. Never files, never optimisers."""
