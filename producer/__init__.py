"""Everything that emits: trainer, environments, tasks, policy.

Knows the log and nothing of the tables.

from producer import RunConfig, run
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from producer.config import RunConfig
    from producer.training.run import run

__all__ = ["RunConfig", "run"]


def __getattr__(name: str) -> object:
    """Both names on first use, so that importing a part of the package does not import the trainer."""
    if name == "RunConfig":
        from producer.config import RunConfig

        return RunConfig
    if name == "run":
        from producer.training.run import run

        return run
    message = f"module 'producer' has no attribute {name!r}"
    raise AttributeError(message)
