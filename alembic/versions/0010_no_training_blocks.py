"""Without the index of trainings: a trainer finds its records in Kafka by their append time.

Revision: 0010, after 0009.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the index. No row depends on it, so the projection's version stays.

    The locks are taken in a projector's order.
    """
    op.execute("ALTER TABLE cua.reader_position DROP indexed_from")
    op.execute("DROP TABLE cua.training_block")


def downgrade() -> None:
    """Make it again; what was read before is not in it until a rebuild."""
    op.execute(
        "CREATE TABLE cua.training_block (topic TEXT NOT NULL, partition INTEGER NOT NULL,"
        " block BIGINT NOT NULL, trainings JSONB NOT NULL,"
        " CONSTRAINT pk_training_block PRIMARY KEY (topic, partition, block))"
        " WITH (fillfactor = 70)"
    )
    op.execute(
        "CREATE INDEX ix_training_block_trainings ON cua.training_block USING gin (trainings)"
        " WITH (fastupdate = off)"
    )
    op.execute("ALTER TABLE cua.reader_position ADD indexed_from BIGINT")
    op.execute("UPDATE cua.reader_position SET indexed_from = next_offset")
