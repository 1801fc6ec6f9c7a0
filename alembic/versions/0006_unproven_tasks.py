"""Which tasks have a content that their id does not prove.

Revision: 0006, after 0005.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the rebuild that the new projection version asks for fills it."""
    op.execute("ALTER TABLE cua.task ADD unproven_hash TEXT")


def downgrade() -> None:
    """Drop the column; rows of version 4 are version 3's, and an upgrade fills it by a rebuild."""
    op.execute("UPDATE cua.projection SET version = LEAST(version, 3)")
    op.execute("ALTER TABLE cua.task DROP unproven_hash")
