"""Verdicts, and the judges of tasks that no environment judges: the agent itself or a model."""

from producer.validators.verdict import Evidence, Verdict

__all__ = ["Evidence", "Verdict"]
