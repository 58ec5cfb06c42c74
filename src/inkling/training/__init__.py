"""The one loop, schedules, and the state of a checkpoint. Never which model it trains."""
