"""The small policy of DB Bench: made from demonstrations of generated entries."""
