"""How the installation is doing: lag, who projects, what is not applied, trainings and disk use.

Every query is cheap whatever the tables' size: positions, partial indexes and relation sizes, never
a count over rollouts or turns. Leaked devices take one pass over `environment`, which alerts and
metrics do without.
"""

from consumers.status.alerts import alerts
from consumers.status.disk import DiskUse
from consumers.status.lag import PartitionStatus
from consumers.status.projector import ProjectorStatus
from consumers.status.read import ProjectionStatus, read_status
from consumers.status.trainings import TrainingStatus
from consumers.status.unapplied import UnappliedCounts, count_unapplied

__all__ = [
    "DiskUse",
    "PartitionStatus",
    "ProjectionStatus",
    "ProjectorStatus",
    "TrainingStatus",
    "UnappliedCounts",
    "alerts",
    "count_unapplied",
    "read_status",
]
