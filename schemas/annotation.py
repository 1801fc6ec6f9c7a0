"""What people note about a training; stream `annotation/<id of the training>`.

A process that annotates opens the stream's next epoch. The training's own stream has one writer,
the trainer: a training may be renamed while it trains.
"""

from typing import ClassVar

from schemas.base import Id, Items, Payload


class TrainingAnnotated(Payload):
    """A training was renamed for display, tagged, noted, hidden or shown again."""

    TYPE: ClassVar[str] = "cua.annotation.recorded"

    training_id: Id
    """The training."""
    display_name: str | None = None
    """Shown instead of its name, which stays its identity; None: its name is shown."""
    tags: Items[str] = ()
    """All its tags from now on, sorted."""
    note: str | None = None
    """Its note from now on; None: it has none."""
    hidden: bool = False
    """Whether lists omit it."""
