"""Everything that emits events: trainer, environments, tasks, policy. Knows no tables.

from producer import RunConfig, run
"""

# Instead of typing's, whose import takes as long as the interpreter's start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from producer.config import RunConfig
    from producer.training.run import run

__all__ = ["RunConfig", "run"]


def __getattr__(name: str) -> object:
    """Import both names on first use: a part of the package does not need the trainer."""
    if name == "RunConfig":
        from producer.config import RunConfig

        return RunConfig
    if name == "run":
        from producer.training.run import run

        return run
    message = f"module 'producer' has no attribute {name!r}"
    raise AttributeError(message)
