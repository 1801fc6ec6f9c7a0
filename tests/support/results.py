"""Ends of rollouts that nothing ran."""

from datetime import UTC, datetime
from typing import Any

from schemas.rollout import RolloutFinished


def finished(reward: float, *, success: bool | None = None, **facts: Any) -> RolloutFinished:
    """A judged episode of two turns and ten tokens; solved if its reward is above 0."""
    defaults = {
        "task_ended_at": datetime(2026, 1, 1, tzinfo=UTC),
        "rollout_time_s": 1.0,
        "validation_time_s": 0.0,
        "task_completed": True,
        "task_success": reward > 0 if success is None else success,
        "agent_reported_success": None,
        "validation_passed": None,
        "num_turns": 2,
        "reward": reward,
        "num_total_actions": 2,
        "consecutive_repeated_actions": 0,
        "parse_errors": 0,
        "tool_name_errors": 0,
        "tool_arg_errors": 0,
        "runtime_errors": 0,
        "ran_out_of_turns": False,
        "attempted_completion": True,
        "turn_first_success": None,
        "turn_task_completed": None,
        "num_tokens": 10,
    }
    return RolloutFinished.model_validate({**defaults, **facts})
