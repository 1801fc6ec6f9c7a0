"""What a training's recorded evaluation came to, and what a manifest calls it."""

from producer.log.stream_history import StreamHistory
from schemas.catalogue import stream_owner
from schemas.evaluation import EvaluationCreated, evaluation_label
from schemas.status import MACHINES


def label_of(created: EvaluationCreated) -> str:
    """As in a manifest: `baseline`, `eval-20-sampled`."""
    return evaluation_label(created.kind, created.step, created.temperature)


def has_failed(created: EvaluationCreated, history: StreamHistory) -> bool:
    """Whether it ended without a result; one of its groups may fail without that."""
    return _status(created, history) == "failed"


def has_ended(created: EvaluationCreated, history: StreamHistory) -> bool:
    """Whether nothing more is to come of it."""
    return _status(created, history) in MACHINES["eval"].ends


def _status(created: EvaluationCreated, history: StreamHistory) -> str | None:
    table = "baseline" if created.kind == "baseline" else "eval"
    return history.statuses.get((table, stream_owner(history.subject)))
