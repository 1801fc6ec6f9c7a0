"""SQL agents: entries of data sets, sessions, completions with scored steps, success by skill.

And an index of the trainings that blocks of offsets name, and the partitions of every stream.

Revision: 0008, after 0007.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLES = (
    "CREATE TABLE cua.entry (id UUID NOT NULL, task_id UUID NOT NULL, content_hash TEXT NOT NULL,"
    " kind TEXT NOT NULL, entry_id TEXT NOT NULL, instruction TEXT NOT NULL, table_name TEXT,"
    " columns_json JSONB, rows_json JSONB, database TEXT, database_sha256 TEXT, evidence TEXT,"
    " answer_direct_json JSONB, answer_md5 TEXT, sql TEXT, skills JSONB NOT NULL, difficulty TEXT,"
    " created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,"
    " CONSTRAINT pk_entry PRIMARY KEY (id),"
    " CONSTRAINT uq_entry_task_id_content_hash UNIQUE (task_id, content_hash))",
    "CREATE TABLE cua.session (id UUID NOT NULL, entry_id UUID NOT NULL,"
    " session_status TEXT NOT NULL, outcome TEXT NOT NULL, answer TEXT, table_hash TEXT,"
    " num_rounds INTEGER NOT NULL, num_operations INTEGER NOT NULL,"
    " num_sql_errors INTEGER NOT NULL, num_replayed INTEGER NOT NULL, error_message TEXT,"
    " end_time TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,"
    " CONSTRAINT pk_session PRIMARY KEY (id))",
    "CREATE INDEX ix_session_entry_id ON cua.session (entry_id)",
    "CREATE TABLE cua.completion (id UUID NOT NULL, entry_id UUID NOT NULL, sql TEXT,"
    " num_steps INTEGER NOT NULL, outcome TEXT NOT NULL, outcome_reward DOUBLE PRECISION NOT NULL,"
    " process_reward DOUBLE PRECISION, num_rows INTEGER, execution_time DOUBLE PRECISION,"
    " error_message TEXT, executed_at TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,"
    " CONSTRAINT pk_completion PRIMARY KEY (id))",
    "CREATE INDEX ix_completion_entry_id ON cua.completion (entry_id)",
    "CREATE TABLE cua.completion_score (id UUID NOT NULL, completion_id UUID NOT NULL,"
    " scorer TEXT NOT NULL, num_steps INTEGER NOT NULL, product DOUBLE PRECISION NOT NULL,"
    " minimum DOUBLE PRECISION NOT NULL, last DOUBLE PRECISION NOT NULL,"
    " average DOUBLE PRECISION NOT NULL, scored_at TIMESTAMPTZ NOT NULL,"
    " created_at TIMESTAMPTZ NOT NULL, CONSTRAINT pk_completion_score PRIMARY KEY (id),"
    " CONSTRAINT uq_completion_score_completion_id_scorer UNIQUE (completion_id, scorer))",
    "CREATE TABLE cua.step_score (id UUID NOT NULL, completion_id UUID NOT NULL,"
    " scorer TEXT NOT NULL, step_index INTEGER NOT NULL, text TEXT NOT NULL,"
    " first_token INTEGER NOT NULL, last_token INTEGER NOT NULL, score DOUBLE PRECISION NOT NULL,"
    " label DOUBLE PRECISION, created_at TIMESTAMPTZ NOT NULL,"
    " CONSTRAINT pk_step_score PRIMARY KEY (id),"
    " CONSTRAINT uq_step_score_completion_id_scorer_step_index"
    " UNIQUE (completion_id, scorer, step_index))",
    "CREATE TABLE cua.skill_success (id UUID NOT NULL, training_id UUID NOT NULL,"
    " evaluation_id UUID NOT NULL, generation INTEGER NOT NULL, step INTEGER NOT NULL,"
    " stage INTEGER, trained_skill TEXT, skill TEXT NOT NULL, num_sessions INTEGER NOT NULL,"
    " num_correct INTEGER NOT NULL, success_rate DOUBLE PRECISION NOT NULL,"
    " measured_at TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,"
    " CONSTRAINT pk_skill_success PRIMARY KEY (id),"
    " CONSTRAINT uq_skill_success_training_id_evaluation_id_skill"
    " UNIQUE (training_id, evaluation_id, skill))",
    "CREATE INDEX ix_skill_success_evaluation_id ON cua.skill_success (evaluation_id)",
)
INDEX = (
    "CREATE INDEX ix_training_block_trainings ON cua.training_block USING gin (trainings)"
    " WITH (fastupdate = off)"
)
VIEWS = ("session_summary", "completion_summary", "sql_turn", "skill_progress")


def upgrade() -> None:
    """Make the tables.

    Older code has projected no row of them: it parked their events, which the first start of this
    code applies. So rows of version 4 are version 5's, and need no rebuild.
    """
    for statement in TABLES:
        op.execute(statement)
    op.execute(INDEX)
    op.execute("ALTER TABLE cua.stream_position ADD COLUMN partitions JSONB")
    op.execute("UPDATE cua.projection SET version = 5 WHERE version = 4")


def downgrade() -> None:
    """Drop them, and the views of them, which older code would take for a user's.

    Version 5's other rows are version 4's, but for turns without a screen, which older code cannot
    read: where a row is lost an upgrade asks for a rebuild.
    """
    op.execute(
        "UPDATE cua.projection SET version = CASE WHEN EXISTS (SELECT FROM cua.entry)"
        " OR EXISTS (SELECT FROM cua.session) OR EXISTS (SELECT FROM cua.completion)"
        " OR EXISTS (SELECT FROM cua.completion_score) OR EXISTS (SELECT FROM cua.skill_success)"
        " THEN 3 ELSE 4 END WHERE version = 5"
    )
    for view in VIEWS:
        op.execute(f"DROP VIEW IF EXISTS cua.{view}")
        op.execute(f"DROP FUNCTION IF EXISTS cua.{view}_rows()")
    op.execute("ALTER TABLE cua.stream_position DROP COLUMN IF EXISTS partitions")
    op.execute("DROP INDEX IF EXISTS cua.ix_training_block_trainings")
    op.execute(
        "DROP TABLE cua.entry, cua.session, cua.completion, cua.completion_score, cua.step_score,"
        " cua.skill_success"
    )
