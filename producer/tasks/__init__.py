"""What is to be done: goals, where they come from, the demo tasks, and whether they can be done at all."""
