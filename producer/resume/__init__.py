"""Resuming a training: its recorded history, its saved states, and a dead process's orphans."""
