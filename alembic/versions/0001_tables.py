"""The tables of the log's fold, the projection's own state and the projector's lease.

Revision: 0001, the first.
"""

import re

from alembic import op
from sqlalchemy import text

from consumers.database.dependants import create_schema
from consumers.database.own_views import drop_views

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE cua.training (
    id UUID NOT NULL, run_name TEXT NOT NULL, kind TEXT NOT NULL, generation INTEGER NOT NULL, log_path TEXT,
    model_name TEXT NOT NULL, lora_rank INTEGER, learning_rate DOUBLE PRECISION NOT NULL, batch_size INTEGER NOT NULL,
    group_size INTEGER NOT NULL, groups_per_batch INTEGER NOT NULL, max_tokens INTEGER NOT NULL,
    temperature DOUBLE PRECISION NOT NULL, kl_penalty_coef DOUBLE PRECISION NOT NULL, num_substeps INTEGER NOT NULL,
    max_turns INTEGER NOT NULL, seed BIGINT NOT NULL, box_type TEXT NOT NULL, renderer_name TEXT, wandb_project TEXT,
    wandb_name TEXT, current_step INTEGER NOT NULL, total_steps INTEGER NOT NULL, last_heartbeat TIMESTAMPTZ,
    checkpoint_path TEXT, config_json JSONB NOT NULL, status TEXT NOT NULL, progress_percent DOUBLE PRECISION NOT NULL,
    current_phase TEXT, status_message TEXT, error_message TEXT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL, avg_turn_time DOUBLE PRECISION,
    estimated_total_time DOUBLE PRECISION, estimated_remaining_time DOUBLE PRECISION,
    CONSTRAINT pk_training PRIMARY KEY (id),
    CONSTRAINT uq_training_run_name UNIQUE (run_name)
) WITH (fillfactor = 70);
CREATE TABLE cua.baseline (
    id UUID NOT NULL, training_id UUID, generation INTEGER, step INTEGER, superseded BOOLEAN NOT NULL, model_path TEXT,
    current_task_index INTEGER NOT NULL, total_tasks INTEGER NOT NULL, completed_tasks INTEGER NOT NULL,
    eval_time DOUBLE PRECISION, success_rate DOUBLE PRECISION, avg_reward DOUBLE PRECISION, avg_turns DOUBLE PRECISION,
    successful_tasks INTEGER, metrics_json JSONB, status TEXT NOT NULL, progress_percent DOUBLE PRECISION NOT NULL,
    current_phase TEXT, status_message TEXT, error_message TEXT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL, avg_turn_time DOUBLE PRECISION,
    estimated_total_time DOUBLE PRECISION, estimated_remaining_time DOUBLE PRECISION, temperature DOUBLE PRECISION,
    split TEXT, num_tasks INTEGER, task_source TEXT, standard_error DOUBLE PRECISION,
    CONSTRAINT pk_baseline PRIMARY KEY (id)
) WITH (fillfactor = 70);
CREATE INDEX ix_baseline_training_id ON cua.baseline (training_id);
CREATE TABLE cua.eval (
    id UUID NOT NULL, kind TEXT NOT NULL, training_id UUID, generation INTEGER, step INTEGER, superseded BOOLEAN NOT NULL,
    model_path TEXT, current_task_index INTEGER NOT NULL, total_tasks INTEGER NOT NULL, completed_tasks INTEGER NOT NULL,
    eval_time DOUBLE PRECISION, success_rate DOUBLE PRECISION, avg_reward DOUBLE PRECISION, avg_turns DOUBLE PRECISION,
    successful_tasks INTEGER, metrics_json JSONB, status TEXT NOT NULL, progress_percent DOUBLE PRECISION NOT NULL,
    current_phase TEXT, status_message TEXT, error_message TEXT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL, avg_turn_time DOUBLE PRECISION,
    estimated_total_time DOUBLE PRECISION, estimated_remaining_time DOUBLE PRECISION, temperature DOUBLE PRECISION,
    split TEXT, num_tasks INTEGER, task_source TEXT, standard_error DOUBLE PRECISION,
    CONSTRAINT pk_eval PRIMARY KEY (id),
    CONSTRAINT ck_eval_kind CHECK (kind IN ('scheduled', 'manual'))
) WITH (fillfactor = 70);
CREATE INDEX ix_eval_training_id ON cua.eval (training_id);
CREATE UNIQUE INDEX uq_eval_scheduled ON cua.eval (training_id, generation, step, temperature) WHERE kind = 'scheduled';
CREATE TABLE cua.task (
    id UUID NOT NULL, task_id TEXT NOT NULL, definition_hash TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
    difficulty TEXT, category TEXT, max_steps INTEGER NOT NULL, validation_type TEXT, validation_query TEXT,
    expected_result TEXT, tags JSONB NOT NULL, prerequisites JSONB NOT NULL, app_name TEXT, source_type TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_task PRIMARY KEY (id),
    CONSTRAINT uq_task_task_id_definition_hash UNIQUE (task_id, definition_hash)
);
CREATE TABLE cua.validator (
    id UUID NOT NULL, task_id UUID NOT NULL, validator_type TEXT NOT NULL, validation_query TEXT NOT NULL,
    validation_method TEXT NOT NULL, config_json JSONB NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_validator PRIMARY KEY (id)
);
CREATE INDEX ix_validator_task_id ON cua.validator (task_id);
CREATE TABLE cua.step (
    id UUID NOT NULL, training_id UUID NOT NULL, generation INTEGER NOT NULL, step INTEGER NOT NULL,
    superseded BOOLEAN NOT NULL, batch INTEGER NOT NULL, rollout_progress DOUBLE PRECISION NOT NULL,
    training_progress DOUBLE PRECISION NOT NULL, rollout_start_time TIMESTAMPTZ, rollout_end_time TIMESTAMPTZ,
    training_start_time TIMESTAMPTZ, training_end_time TIMESTAMPTZ, learning_rate DOUBLE PRECISION NOT NULL, model_path TEXT,
    checkpoint_path TEXT, policy_version INTEGER, loss DOUBLE PRECISION, kl_divergence DOUBLE PRECISION,
    policy_gradient_norm DOUBLE PRECISION, reward_mean DOUBLE PRECISION, reward_std DOUBLE PRECISION, num_trajectories INTEGER,
    num_tokens BIGINT, metrics_json JSONB, status TEXT NOT NULL, progress_percent DOUBLE PRECISION NOT NULL, current_phase TEXT,
    status_message TEXT, error_message TEXT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ, created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL, avg_turn_time DOUBLE PRECISION, estimated_total_time DOUBLE PRECISION,
    estimated_remaining_time DOUBLE PRECISION,
    CONSTRAINT pk_step PRIMARY KEY (id),
    CONSTRAINT uq_step_training_id_generation_step UNIQUE (training_id, generation, step)
) WITH (fillfactor = 70);
CREATE TABLE cua."group" (
    id UUID NOT NULL, training_id UUID, superseded BOOLEAN NOT NULL, source_type TEXT NOT NULL, step_id UUID, eval_id UUID,
    baseline_id UUID, group_num INTEGER NOT NULL, batch INTEGER NOT NULL, num_rollouts INTEGER NOT NULL,
    completed_rollouts INTEGER NOT NULL, reward_mean DOUBLE PRECISION, reward_std DOUBLE PRECISION, success_count INTEGER,
    dropped_reason TEXT, rollout_ids JSONB, metrics_json JSONB, status TEXT NOT NULL,
    progress_percent DOUBLE PRECISION NOT NULL, current_phase TEXT, status_message TEXT, error_message TEXT,
    start_time TIMESTAMPTZ, end_time TIMESTAMPTZ, created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    avg_turn_time DOUBLE PRECISION, estimated_total_time DOUBLE PRECISION, estimated_remaining_time DOUBLE PRECISION,
    CONSTRAINT pk_group PRIMARY KEY (id),
    CONSTRAINT ck_group_one_source CHECK (num_nonnulls(step_id, eval_id, baseline_id) = 1)
) WITH (fillfactor = 70);
CREATE INDEX ix_group_training_id ON cua."group" (training_id);
CREATE UNIQUE INDEX uq_group_baseline_id_group_num ON cua."group" (baseline_id, group_num);
CREATE UNIQUE INDEX uq_group_eval_id_group_num ON cua."group" (eval_id, group_num);
CREATE UNIQUE INDEX uq_group_step_id_group_num ON cua."group" (step_id, group_num);
CREATE TABLE cua.rollout (
    id UUID NOT NULL, training_id UUID, source_type TEXT NOT NULL, step_id UUID, eval_id UUID, baseline_id UUID,
    group_id UUID NOT NULL, env_id UUID, rollout_id TEXT NOT NULL, batch INTEGER NOT NULL, group_num INTEGER NOT NULL,
    env_index INTEGER NOT NULL, attempt INTEGER NOT NULL, task_id UUID NOT NULL, model_path TEXT,
    policy_version INTEGER NOT NULL, is_eval BOOLEAN NOT NULL, seed BIGINT NOT NULL, current_turn INTEGER NOT NULL,
    env_creation_time DOUBLE PRECISION, agent_init_time DOUBLE PRECISION, task_start_time TIMESTAMPTZ,
    task_end_time TIMESTAMPTZ, validation_time DOUBLE PRECISION, rollout_time DOUBLE PRECISION, task_completed BOOLEAN,
    task_success BOOLEAN, agent_reported_success BOOLEAN, validation_passed BOOLEAN, num_turns INTEGER,
    max_turns INTEGER NOT NULL, reward DOUBLE PRECISION, temperature DOUBLE PRECISION NOT NULL, num_tokens BIGINT,
    num_total_actions INTEGER, consecutive_repeated_actions INTEGER, parse_errors INTEGER, tool_name_errors INTEGER,
    tool_arg_errors INTEGER, runtime_errors INTEGER, ran_out_of_turns BOOLEAN, attempted_completion BOOLEAN,
    turn_first_success INTEGER, turn_task_completed INTEGER, error_type TEXT, errors JSONB, summary_json JSONB,
    trajectory_path TEXT, trajectory_data_json JSONB, status TEXT NOT NULL, progress_percent DOUBLE PRECISION NOT NULL,
    current_phase TEXT, status_message TEXT, error_message TEXT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_rollout PRIMARY KEY (id),
    CONSTRAINT uq_rollout_rollout_id UNIQUE (rollout_id),
    CONSTRAINT ck_rollout_one_source CHECK (num_nonnulls(step_id, eval_id, baseline_id) = 1)
) WITH (fillfactor = 70);
CREATE INDEX ix_rollout_baseline_id ON cua.rollout (baseline_id) WHERE baseline_id IS NOT NULL;
CREATE INDEX ix_rollout_eval_id ON cua.rollout (eval_id) WHERE eval_id IS NOT NULL;
CREATE INDEX ix_rollout_group_id ON cua.rollout (group_id);
CREATE INDEX ix_rollout_step_id ON cua.rollout (step_id) WHERE step_id IS NOT NULL;
CREATE INDEX ix_rollout_task_id ON cua.rollout (task_id);
CREATE INDEX ix_rollout_training_id ON cua.rollout (training_id);
CREATE TABLE cua.turn (
    id UUID NOT NULL, rollout_id UUID NOT NULL, turn INTEGER NOT NULL, start_time TIMESTAMPTZ NOT NULL,
    end_time TIMESTAMPTZ NOT NULL, turn_time DOUBLE PRECISION NOT NULL, reward DOUBLE PRECISION NOT NULL,
    episode_done BOOLEAN NOT NULL, policy_version INTEGER NOT NULL, metrics_json JSONB NOT NULL, model_response TEXT NOT NULL,
    stop_reason TEXT, num_tokens INTEGER, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_turn PRIMARY KEY (id),
    CONSTRAINT uq_turn_rollout_id_turn UNIQUE (rollout_id, turn)
);
CREATE TABLE cua.action (
    id UUID NOT NULL, turn_id UUID NOT NULL, action_index INTEGER NOT NULL, action_type TEXT, action_json JSONB,
    tool_name TEXT NOT NULL, tool_args JSONB NOT NULL, error_type TEXT, error_message TEXT, tokens TEXT, logprobs TEXT,
    num_tokens INTEGER, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_action PRIMARY KEY (id),
    CONSTRAINT uq_action_turn_id_action_index UNIQUE (turn_id, action_index)
);
CREATE TABLE cua.obs (
    id UUID NOT NULL, turn_id UUID NOT NULL, obs_type TEXT NOT NULL, screenshot_uri TEXT, text_content TEXT,
    model_input_json JSONB, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_obs PRIMARY KEY (id),
    CONSTRAINT uq_obs_turn_id_obs_type UNIQUE (turn_id, obs_type),
    CONSTRAINT ck_obs_obs_type CHECK (obs_type IN ('screenshot_before', 'screenshot_after', 'model_response', 'text'))
);
CREATE TABLE cua.validation (
    id UUID NOT NULL, stream TEXT NOT NULL, rollout_id UUID NOT NULL, validator_id UUID NOT NULL, rank INTEGER NOT NULL,
    validation_time TIMESTAMPTZ NOT NULL, validation_query TEXT NOT NULL, expected_result TEXT, actual_result TEXT,
    success BOOLEAN NOT NULL, execution_time DOUBLE PRECISION NOT NULL, error_message TEXT, details_json JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_validation PRIMARY KEY (id),
    CONSTRAINT uq_validation_stream_validator_id UNIQUE (stream, validator_id)
);
CREATE INDEX ix_validation_rollout_id ON cua.validation (rollout_id);
CREATE INDEX ix_validation_validator_id ON cua.validation (validator_id);
CREATE TABLE cua.environment (
    id UUID NOT NULL, training_id UUID, env_type TEXT NOT NULL, status TEXT NOT NULL, gbox_id TEXT, box_type TEXT NOT NULL,
    creation_time TIMESTAMPTZ, termination_time TIMESTAMPTZ, status_message TEXT, error_message TEXT,
    config_json JSONB NOT NULL, created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_environment PRIMARY KEY (id)
) WITH (fillfactor = 70);
CREATE INDEX ix_environment_training_id ON cua.environment (training_id);
CREATE TABLE cua.sample (
    id UUID NOT NULL, step_id UUID NOT NULL, group_id UUID NOT NULL, rollout_id UUID NOT NULL, advantage DOUBLE PRECISION,
    reward DOUBLE PRECISION NOT NULL, policy_version INTEGER NOT NULL, staleness INTEGER NOT NULL, num_tokens INTEGER NOT NULL,
    used BOOLEAN NOT NULL, drop_reason TEXT, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_sample PRIMARY KEY (id),
    CONSTRAINT uq_sample_step_id_rollout_id UNIQUE (step_id, rollout_id)
);
CREATE INDEX ix_sample_group_id ON cua.sample (group_id);
CREATE INDEX ix_sample_rollout_id ON cua.sample (rollout_id);
CREATE TABLE cua.status_history (
    id UUID NOT NULL, entity_type TEXT NOT NULL, entity_id UUID NOT NULL, old_status TEXT, new_status TEXT NOT NULL,
    progress_percent DOUBLE PRECISION, status_message TEXT, metadata_json JSONB NOT NULL, changed_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL, stream TEXT NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL,
    CONSTRAINT pk_status_history PRIMARY KEY (id),
    CONSTRAINT uq_status_history_entity_type_entity_id_epoch_sequence UNIQUE (entity_type, entity_id, epoch, sequence)
);
CREATE TABLE cua.annotation (
    id UUID NOT NULL, training_id UUID NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, display_name TEXT,
    tags JSONB NOT NULL, note TEXT, hidden BOOLEAN NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_annotation PRIMARY KEY (id),
    CONSTRAINT uq_annotation_training_id_epoch_sequence UNIQUE (training_id, epoch, sequence)
);
CREATE TABLE cua.scoring (
    id UUID NOT NULL, training_id UUID NOT NULL, reward_name TEXT NOT NULL, judge TEXT, config_json JSONB NOT NULL,
    total_rollouts INTEGER NOT NULL, scored_rollouts INTEGER, failed_rollouts INTEGER, reward_mean DOUBLE PRECISION,
    success_rate DOUBLE PRECISION, end_time TIMESTAMPTZ, created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_scoring PRIMARY KEY (id)
);
CREATE INDEX ix_scoring_training_id ON cua.scoring (training_id);
CREATE TABLE cua.score (
    id UUID NOT NULL, scoring_id UUID NOT NULL, rollout_id UUID NOT NULL, reward DOUBLE PRECISION, success BOOLEAN,
    error_message TEXT, details_json JSONB NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_score PRIMARY KEY (id),
    CONSTRAINT uq_score_scoring_id_rollout_id UNIQUE (scoring_id, rollout_id)
);
CREATE INDEX ix_score_rollout_id ON cua.score (rollout_id);
CREATE TABLE cua.entry (
    id UUID NOT NULL, task_id UUID NOT NULL, content_hash TEXT NOT NULL, kind TEXT NOT NULL, entry_id TEXT NOT NULL,
    instruction TEXT NOT NULL, table_name TEXT, columns_json JSONB, rows_json JSONB, database TEXT, database_sha256 TEXT,
    evidence TEXT, answer_direct_json JSONB, answer_md5 TEXT, sql TEXT, skills JSONB NOT NULL, difficulty TEXT,
    created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_entry PRIMARY KEY (id),
    CONSTRAINT uq_entry_task_id_content_hash UNIQUE (task_id, content_hash)
);
CREATE TABLE cua.session (
    id UUID NOT NULL, entry_id UUID NOT NULL, session_status TEXT NOT NULL, outcome TEXT NOT NULL, answer TEXT,
    table_hash TEXT, num_rounds INTEGER NOT NULL, num_operations INTEGER NOT NULL, num_sql_errors INTEGER NOT NULL,
    num_replayed INTEGER NOT NULL, error_message TEXT, end_time TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_session PRIMARY KEY (id)
);
CREATE INDEX ix_session_entry_id ON cua.session (entry_id);
CREATE TABLE cua.completion (
    id UUID NOT NULL, entry_id UUID NOT NULL, sql TEXT, num_steps INTEGER NOT NULL, outcome TEXT NOT NULL,
    outcome_reward DOUBLE PRECISION NOT NULL, process_reward DOUBLE PRECISION, num_rows INTEGER,
    execution_time DOUBLE PRECISION, error_message TEXT, executed_at TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_completion PRIMARY KEY (id)
);
CREATE INDEX ix_completion_entry_id ON cua.completion (entry_id);
CREATE TABLE cua.completion_score (
    id UUID NOT NULL, completion_id UUID NOT NULL, scorer TEXT NOT NULL, num_steps INTEGER NOT NULL,
    product DOUBLE PRECISION NOT NULL, minimum DOUBLE PRECISION NOT NULL, last DOUBLE PRECISION NOT NULL,
    average DOUBLE PRECISION NOT NULL, scored_at TIMESTAMPTZ NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_completion_score PRIMARY KEY (id),
    CONSTRAINT uq_completion_score_completion_id_scorer UNIQUE (completion_id, scorer)
);
CREATE TABLE cua.step_score (
    id UUID NOT NULL, completion_id UUID NOT NULL, scorer TEXT NOT NULL, step_index INTEGER NOT NULL, text TEXT NOT NULL,
    first_token INTEGER NOT NULL, last_token INTEGER NOT NULL, score DOUBLE PRECISION NOT NULL, label DOUBLE PRECISION,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_step_score PRIMARY KEY (id),
    CONSTRAINT uq_step_score_completion_id_scorer_step_index UNIQUE (completion_id, scorer, step_index)
);
CREATE TABLE cua.skill_success (
    id UUID NOT NULL, training_id UUID NOT NULL, evaluation_id UUID NOT NULL, generation INTEGER NOT NULL,
    step INTEGER NOT NULL, stage INTEGER, trained_skill TEXT, skill TEXT NOT NULL, num_sessions INTEGER NOT NULL,
    num_correct INTEGER NOT NULL, success_rate DOUBLE PRECISION NOT NULL, measured_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_skill_success PRIMARY KEY (id),
    CONSTRAINT uq_skill_success_training_id_evaluation_id_skill UNIQUE (training_id, evaluation_id, skill)
);
CREATE INDEX ix_skill_success_evaluation_id ON cua.skill_success (evaluation_id);
CREATE TABLE cua.projection (
    one INTEGER NOT NULL, build_id UUID NOT NULL, version INTEGER NOT NULL, catalogue_hash TEXT NOT NULL, log_id TEXT,
    CONSTRAINT pk_projection PRIMARY KEY (one),
    CONSTRAINT ck_projection_one CHECK (one = 1)
);
CREATE TABLE cua.reader_position (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset BIGINT NOT NULL, appended_at TIMESTAMPTZ,
    num_events BIGINT NOT NULL, num_duplicates BIGINT NOT NULL,
    CONSTRAINT pk_reader_position PRIMARY KEY (topic, partition)
) WITH (fillfactor = 70);
CREATE TABLE cua.stream_position (
    stream TEXT NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, source TEXT NOT NULL, ends JSONB NOT NULL,
    refused JSONB NOT NULL, statuses JSONB NOT NULL, parked_since TIMESTAMPTZ, dropped BOOLEAN NOT NULL,
    num_waiting INTEGER NOT NULL, last_event_at TIMESTAMPTZ, drops JSONB NOT NULL,
    CONSTRAINT pk_stream_position PRIMARY KEY (stream)
) WITH (fillfactor = 70);
CREATE INDEX ix_stream_position_parked ON cua.stream_position (stream) WHERE parked_since IS NOT NULL;
CREATE INDEX ix_stream_position_waiting ON cua.stream_position (stream) WHERE num_waiting > 0;
CREATE TABLE cua.unapplied_record (
    log_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, log_offset BIGINT NOT NULL, state TEXT NOT NULL,
    kind TEXT NOT NULL, reason TEXT NOT NULL, stream TEXT NOT NULL, type TEXT, epoch INTEGER, sequence INTEGER, key TEXT,
    value BYTEA NOT NULL, event_time TIMESTAMPTZ, appended_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_unapplied_record PRIMARY KEY (log_id, topic, partition, log_offset),
    CONSTRAINT ck_unapplied_record_state CHECK (state IN ('waiting', 'parked', 'refused'))
);
CREATE INDEX ix_unapplied_record_state ON cua.unapplied_record (state);
CREATE INDEX ix_unapplied_record_stream ON cua.unapplied_record (stream);
CREATE TABLE cua_ops.lease (
    name VARCHAR NOT NULL, holder TEXT NOT NULL, backend_pid INTEGER NOT NULL, backend_start TIMESTAMPTZ NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL, projection_version INTEGER NOT NULL, acquired_at TIMESTAMPTZ,
    caught_up_at TIMESTAMPTZ, last_error TEXT, last_error_at TIMESTAMPTZ,
    CONSTRAINT pk_lease PRIMARY KEY (name)
);
"""

SEARCH_PATH = """
DO $$ BEGIN
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = cua, public', current_database());
END $$
"""


def upgrade() -> None:
    """Make both schemas and every table; plain psql finds them from the next connection on."""
    op.execute(create_schema("cua"))
    op.execute(create_schema("cua_ops"))
    op.execute(TABLES)
    op.execute(SEARCH_PATH)


def downgrade() -> None:
    """Drop the rows, which the log has, and the lease; never what is not ours."""
    connection = op.get_bind()
    # Views belong to no revision; the code that made them drops them.
    drop_views(connection.connection.driver_connection.cursor(), "cua")
    names = re.findall(r'CREATE TABLE cua\."?(\w+)', TABLES)
    listed = "SELECT format('cua.%I', tablename) FROM pg_tables WHERE schemaname = 'cua' AND tablename = ANY(:names)"
    tables = connection.execute(text(listed), {"names": names}).scalars().all()
    if tables:
        op.execute(f"DROP TABLE {', '.join(tables)} RESTRICT")
    op.execute("DROP SCHEMA cua RESTRICT")
    op.execute("DROP TABLE cua_ops.lease")
