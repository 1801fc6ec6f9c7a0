"""Validators: judge a task by a device's shell alone, so that any Android device will do."""

from producer.validators.judge import Verdict, judge

__all__ = ["Verdict", "judge"]
