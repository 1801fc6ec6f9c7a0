"""What the figures of an evaluation are of: temperature, split, tasks, clustered standard error.

Revision: 0009, after 0008.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = ("eval", "baseline")
COLUMNS = (
    ("temperature", "DOUBLE PRECISION"),
    ("split", "TEXT"),
    ("num_tasks", "INTEGER"),
    ("task_source", "TEXT"),
    ("standard_error", "DOUBLE PRECISION"),
)
UNIQUE = "CREATE UNIQUE INDEX uq_eval_scheduled ON cua.eval ({}) WHERE kind = 'scheduled'"


def upgrade() -> None:
    """Add the columns; the rebuild that the new projection version asks for fills them."""
    for table in TABLES:
        columns = ", ".join(f"ADD {name} {type_}" for name, type_ in COLUMNS)
        op.execute(f"ALTER TABLE cua.{table} {columns}")
    op.execute("DROP INDEX cua.uq_eval_scheduled")
    op.execute(UNIQUE.format("training_id, generation, step, temperature"))


def downgrade() -> None:
    """Drop the columns.

    The tables keep one evaluation of each step, the greedy one, until an upgrade and its rebuild.
    """
    op.execute("UPDATE cua.projection SET version = LEAST(version, 5)")
    op.execute(
        "DELETE FROM cua.eval a USING cua.eval b WHERE a.kind = 'scheduled'"
        " AND b.kind = 'scheduled' AND a.training_id = b.training_id"
        " AND a.generation = b.generation AND a.step = b.step AND a.temperature > b.temperature"
    )
    op.execute("DROP INDEX cua.uq_eval_scheduled")
    for table in TABLES:
        columns = ", ".join(f"DROP {name}" for name, _ in COLUMNS)
        op.execute(f"ALTER TABLE cua.{table} {columns}")
    op.execute(UNIQUE.format("training_id, generation, step"))
