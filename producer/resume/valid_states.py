"""Which saved states count: only those whose training the tables show.

A process that was paused, replaced and continued may save a state before it notices. Its rollouts
and its step are fenced in the log, so nothing may continue from that state.
"""

from collections.abc import Sequence
from uuid import UUID

from producer.log.stream_history import StreamHistory
from producer.resume.resume_state import Manifest, SavedState
from schemas import ids
from schemas.base import Payload
from schemas.step import StepFinished
from schemas.training import TrainingResumed


def valid_states(
    states: Sequence[SavedState], own: StreamHistory, training_id: UUID
) -> list[SavedState]:
    """The states that were saved under a claim that was valid then. `own`: the training's stream.

    A state counts if the log has its claim, and every later claim up to the step's end went on from
    that step or a later one. States of older releases name no claim and count.
    """
    return [state for state in states if _counts(state.manifest, own, training_id)]


def _counts(manifest: Manifest, own: StreamHistory, training_id: UUID) -> bool:
    if not manifest.claim_epoch:
        return True
    claims: dict[int, tuple[str, Payload]] = {}
    for event in own.events:
        claims.setdefault(event.envelope.epoch, (event.envelope.source, event.payload))
    source, _ = claims.get(manifest.claim_epoch, ("", None))
    if source != manifest.claim_source:
        return False
    step_id = ids.step_id(training_id, manifest.generation, manifest.step)
    ended = next(
        (
            event.envelope.epoch
            for event in own.events
            if isinstance(event.payload, StepFinished) and event.payload.step_id == step_id
        ),
        own.position.epoch,
    )
    return not any(
        isinstance(claim, TrainingResumed)
        and claim.generation == manifest.generation
        and claim.current_step < manifest.step
        for epoch, (_, claim) in claims.items()
        if manifest.claim_epoch < epoch <= ended
    )
