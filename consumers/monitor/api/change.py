"""What an event of `/events` says: a training's state after a change."""

from uuid import UUID

from consumers.monitor.api.value import Real, Utc, Value


class TrainingChange(Value):
    """The data of an event `training`."""

    id: UUID
    """Row id."""
    run_name: str
    """Its name; `/api/trainings/NAME` has everything else."""
    status: str
    """Its state."""
    progress_percent: Real
    """0-100."""
    current_step: int
    """Steps finished."""
    total_steps: int
    """Steps requested."""
    updated_at: Utc
    """Time of the last event that changed it."""
