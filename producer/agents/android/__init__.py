"""The agent `android`: a phone, its tasks, its judge, its oracle and its small policy."""
