"""What people say of a training, beside what it did; stream `annotation/<id of the training>`.

Whoever annotates opens the stream's next epoch. It is not the training's stream, whose one writer
is the trainer: a training may be renamed while it trains.
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
