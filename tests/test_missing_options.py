"""A command without what it requires is refused before it begins, in both programs."""
