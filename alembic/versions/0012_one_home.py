"""A stream is in one partition, so its row no longer says in which ones its records were read.

Revision: 0012, after 0011.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column."""
    op.execute("ALTER TABLE cua.stream_position DROP COLUMN partitions")


def downgrade() -> None:
    """Add it, empty."""
    op.execute("ALTER TABLE cua.stream_position ADD COLUMN partitions JSONB")
