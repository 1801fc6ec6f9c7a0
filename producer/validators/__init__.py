"""Validators: what a task's outcome is, asked of the device's shell alone, so that a simulator, adb and GBox are judged alike."""

from producer.validators.judge import Verdict, judge

__all__ = ["Verdict", "judge"]
