"""Record a training that another trainer runs: `from producer import record`.

    with record.open("first", policy="my/policy", num_steps=2, group_size=2) as training:
        with training.step() as step:
            with step.group("Turn on Wi-Fi") as group:
                with group.rollout() as rollout:
                    rollout.turn(completion="done", screenshot=png)
                    rollout.finish(reward=0.7)
            step.metrics(loss=0.1)

See `docs/recording.md` for a guide. The names below are the public API, which follows semantic
versioning; `VERSION` is its version.
"""

from producer.errors import CuaTrainError
from producer.record.evaluation import Evaluation
from producer.record.group import Group
from producer.record.opening import open_training as open  # noqa: A004  # `record.open`
from producer.record.rollout import Rollout
from producer.record.settings import VERSION
from producer.record.step import Step
from producer.record.training import Training
from producer.record.values import OrderError
from producer.tasks.custom import CustomTask as Task

__all__ = [
    "VERSION",
    "CuaTrainError",
    "Evaluation",
    "Group",
    "OrderError",
    "Rollout",
    "Step",
    "Task",
    "Training",
    "open",
]
