"""Which blocks of the log's offsets name which trainings, so that a trainer reads only its own.

Revision: 0005, after 0004.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; what was read before is not in it until a rebuild."""
    op.execute(
        "CREATE TABLE cua.training_block (topic TEXT NOT NULL, partition INTEGER NOT NULL,"
        " block BIGINT NOT NULL, trainings JSONB NOT NULL,"
        " CONSTRAINT pk_training_block PRIMARY KEY (topic, partition, block))"
        " WITH (fillfactor = 70)"
    )
    op.execute("ALTER TABLE cua.reader_position ADD indexed_from BIGINT")
    op.execute("UPDATE cua.reader_position SET indexed_from = next_offset")


def downgrade() -> None:
    """Drop the table."""
    op.execute("ALTER TABLE cua.reader_position DROP indexed_from")
    op.execute("DROP TABLE cua.training_block")
