"""The one loop, optimisers, schedules, processes, and the state of a checkpoint. Never which model it trains."""
