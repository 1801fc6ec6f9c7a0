"""The small policy of DB Bench, trained on demonstrations of generated entries."""
