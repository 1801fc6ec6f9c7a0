"""Annotations of trainings: a row for each, the newest of which counts."""

from collections.abc import Sequence
from uuid import UUID

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Insert, Operation, row_id
from schemas.annotation import TrainingAnnotated
from schemas.base import Payload


class AnnotationProjector:
    """TrainingAnnotated."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, TrainingAnnotated)  # noqa: S101  # the registry names the class
        check_id("the annotated training", payload.training_id, UUID(context.owner))
        epoch, sequence = context.envelope.point
        return [
            Insert(
                "annotation",
                {
                    "id": row_id("annotation", context.owner, str(epoch), str(sequence)),
                    "training_id": payload.training_id,
                    "epoch": epoch,
                    "sequence": sequence,
                    "display_name": payload.display_name,
                    "tags": payload.tags,
                    "note": payload.note,
                    "hidden": payload.hidden,
                    "created_at": context.time,
                },
            )
        ]
