"""What the projector's lease says for status, and drops that can be taken back.

Revision: 0003, after 0002.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; existing rows have none of these values."""
    op.execute(
        "ALTER TABLE cua_ops.lease ADD acquired_at TIMESTAMPTZ, ADD caught_up_at TIMESTAMPTZ,"
        " ADD last_error TEXT, ADD last_error_at TIMESTAMPTZ"
    )
    op.execute("ALTER TABLE cua_ops.operator_drop ADD undone_at TIMESTAMPTZ, ADD undone_by TEXT")


def downgrade() -> None:
    """Drop the columns; the older code knows no drop that was taken back."""
    op.execute("DELETE FROM cua_ops.operator_drop WHERE undone_at IS NOT NULL")
    op.execute("ALTER TABLE cua_ops.operator_drop DROP undone_at, DROP undone_by")
    op.execute(
        "ALTER TABLE cua_ops.lease DROP acquired_at, DROP caught_up_at, DROP last_error,"
        " DROP last_error_at"
    )
