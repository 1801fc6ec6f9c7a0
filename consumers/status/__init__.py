"""How the installation is doing: lag, who projects, held records, trainings and disk use.

Every query is cheap whatever the tables' size: positions, partial indexes and relation sizes, never
a count over rollouts or turns. Leaked devices take one pass over `environment`, which alerts and
metrics do without.
"""

from consumers.status.alerts import alerts
from consumers.status.disk import DiskUse
from consumers.status.held import HeldCounts, count_held
from consumers.status.lag import PartitionStatus
from consumers.status.projector import ProjectorStatus
from consumers.status.read import ProjectionStatus, read_status
from consumers.status.trainings import TrainingStatus

__all__ = [
    "DiskUse",
    "HeldCounts",
    "PartitionStatus",
    "ProjectionStatus",
    "ProjectorStatus",
    "TrainingStatus",
    "alerts",
    "count_held",
    "read_status",
]
