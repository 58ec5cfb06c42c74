"""Many trainings for one question, and which of the differences between them are real."""
