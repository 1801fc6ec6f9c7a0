"""Indexes on the columns by which people filter: a training's rollouts, groups, environments.

Revision: 0002, after 0001.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_rollout_training_id": "rollout (training_id)",
    "ix_group_training_id": '"group" (training_id)',
    "ix_environment_training_id": "environment (training_id)",
    "ix_validation_validator_id": "validation (validator_id)",
}


def upgrade() -> None:
    """Make the indexes."""
    for name, columns in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON cua.{columns}")


def downgrade() -> None:
    """Drop them."""
    for name in INDEXES:
        op.execute(f"DROP INDEX cua.{name}")
