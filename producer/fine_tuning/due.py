"""After which steps a supervised training keeps a checkpoint and evaluates."""

from producer.fine_tuning.settings import Every, FineTuningConfig


def is_saved(config: FineTuningConfig, step: int) -> bool:
    """Whether a checkpoint is kept after `step` (from 1); after the last always."""
    return _is_due(config.save_strategy, config.save_steps, config, step)


def is_evaluated(config: FineTuningConfig, step: int) -> bool:
    """Whether the held-out examples are evaluated after `step` (from 1); after the last always."""
    return _is_due(config.eval_strategy, config.eval_steps, config, step)


def _is_due(every: Every, steps: int, config: FineTuningConfig, step: int) -> bool:
    if step == config.num_steps:
        return True
    return every != "no" and step % (steps if every == "steps" else config.steps_per_epoch) == 0
