"""From a file to a finished run, one recipe for each kind of model: text → tokeniser → model → training → run."""
