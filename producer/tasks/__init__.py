"""Tasks: sources that select them, the demo tasks, their goals, and their events."""
