"""Who may come in: what every server of ours asks before it answers, and how it listens."""
