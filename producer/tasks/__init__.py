"""What is to be done: where tasks come from, the demo tasks and their goals, what the log says about a task."""
