"""The run directory on disk, and the list of runs."""
