"""Validators: judge a task by a device's shell alone, so that any Android device will do."""

from producer.validators.judge import judge
from producer.validators.verdict import Evidence, Verdict

__all__ = ["Evidence", "Verdict", "judge"]
