"""Rollouts scored again after their training: scorings, and a score for each rollout.

Revision: 0007, after 0006.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; no log that older code has projected has a row of them."""
    op.execute(
        "CREATE TABLE cua.scoring (id UUID NOT NULL, training_id UUID NOT NULL,"
        " reward_name TEXT NOT NULL, judge TEXT, config_json JSONB NOT NULL,"
        " total_rollouts INTEGER NOT NULL, scored_rollouts INTEGER, failed_rollouts INTEGER,"
        " reward_mean DOUBLE PRECISION, success_rate DOUBLE PRECISION, end_time TIMESTAMPTZ,"
        " created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,"
        " CONSTRAINT pk_scoring PRIMARY KEY (id))"
    )
    op.execute("CREATE INDEX ix_scoring_training_id ON cua.scoring (training_id)")
    op.execute(
        "CREATE TABLE cua.score (id UUID NOT NULL, scoring_id UUID NOT NULL,"
        " rollout_id UUID NOT NULL, reward DOUBLE PRECISION, success BOOLEAN, error_message TEXT,"
        " details_json JSONB NOT NULL, created_at TIMESTAMPTZ NOT NULL,"
        " CONSTRAINT pk_score PRIMARY KEY (id),"
        " CONSTRAINT uq_score_scoring_id_rollout_id UNIQUE (scoring_id, rollout_id))"
    )
    op.execute("CREATE INDEX ix_score_rollout_id ON cua.score (rollout_id)")


def downgrade() -> None:
    """Drop them; the log keeps the scores."""
    op.execute("DROP TABLE cua.score, cua.scoring")
