"""Settings of an update with some of them changed."""

from typing import Any

from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import RolloutOutcome

NO_OUTCOME = RolloutOutcome(0, 0.0, is_right=False)
"""Of a trajectory whose advantage is given."""


def changed(settings: UpdateSettings, **changes: Any) -> UpdateSettings:
    """`settings` with these fields of theirs, or of their learned advantage."""
    learned = settings.learned_advantage
    if learned is not None and "learned_advantage" not in changes:
        own = {name: changes.pop(name) for name in type(learned).model_fields if name in changes}
        changes["learned_advantage"] = learned.model_copy(update=own)
    return settings.model_copy(update=changes)
