"""What people say of a training: display name, tags, note, hidden.

Revision: 0004, after 0003.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; no log that older code has projected has a row of it."""
    op.execute(
        "CREATE TABLE cua.annotation (id UUID NOT NULL, training_id UUID NOT NULL,"
        " epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, display_name TEXT, tags JSONB NOT NULL,"
        " note TEXT, hidden BOOLEAN NOT NULL, created_at TIMESTAMPTZ NOT NULL,"
        " CONSTRAINT pk_annotation PRIMARY KEY (id),"
        " CONSTRAINT uq_annotation_training_id_epoch_sequence UNIQUE (training_id, epoch, sequence))"
    )


def downgrade() -> None:
    """Drop it; the log keeps the annotations."""
    op.execute("DROP TABLE cua.annotation")
