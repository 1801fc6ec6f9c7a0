--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: cua; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA cua;


--
-- Name: cua_ops; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA cua_ops;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: action; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.action (
    id uuid NOT NULL,
    turn_id uuid NOT NULL,
    action_index integer NOT NULL,
    action_type text,
    action_json jsonb,
    tool_name text NOT NULL,
    tool_args jsonb NOT NULL,
    error_type text,
    error_message text,
    tokens text,
    logprobs text,
    num_tokens integer,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: baseline; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.baseline (
    id uuid NOT NULL,
    training_id uuid,
    generation integer,
    step integer,
    superseded boolean NOT NULL,
    model_path text,
    current_task_index integer NOT NULL,
    total_tasks integer NOT NULL,
    completed_tasks integer NOT NULL,
    eval_time double precision,
    success_rate double precision,
    avg_reward double precision,
    avg_turns double precision,
    successful_tasks integer,
    metrics_json jsonb,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    avg_turn_time double precision,
    estimated_total_time double precision,
    estimated_remaining_time double precision
)
WITH (fillfactor='70');


--
-- Name: environment; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.environment (
    id uuid NOT NULL,
    training_id uuid,
    env_type text NOT NULL,
    status text NOT NULL,
    gbox_id text,
    box_type text NOT NULL,
    creation_time timestamp with time zone,
    termination_time timestamp with time zone,
    status_message text,
    error_message text,
    config_json jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');


--
-- Name: eval; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.eval (
    id uuid NOT NULL,
    kind text NOT NULL,
    training_id uuid,
    generation integer,
    step integer,
    superseded boolean NOT NULL,
    model_path text,
    current_task_index integer NOT NULL,
    total_tasks integer NOT NULL,
    completed_tasks integer NOT NULL,
    eval_time double precision,
    success_rate double precision,
    avg_reward double precision,
    avg_turns double precision,
    successful_tasks integer,
    metrics_json jsonb,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    avg_turn_time double precision,
    estimated_total_time double precision,
    estimated_remaining_time double precision,
    CONSTRAINT ck_eval_kind CHECK ((kind = ANY (ARRAY['scheduled'::text, 'manual'::text])))
)
WITH (fillfactor='70');


--
-- Name: group; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua."group" (
    id uuid NOT NULL,
    training_id uuid,
    superseded boolean NOT NULL,
    source_type text NOT NULL,
    step_id uuid,
    eval_id uuid,
    baseline_id uuid,
    group_num integer NOT NULL,
    batch integer NOT NULL,
    num_rollouts integer NOT NULL,
    completed_rollouts integer NOT NULL,
    reward_mean double precision,
    reward_std double precision,
    success_count integer,
    dropped_reason text,
    rollout_ids jsonb,
    metrics_json jsonb,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    avg_turn_time double precision,
    estimated_total_time double precision,
    estimated_remaining_time double precision,
    CONSTRAINT ck_group_one_source CHECK ((num_nonnulls(step_id, eval_id, baseline_id) = 1))
)
WITH (fillfactor='70');


--
-- Name: held_record; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.held_record (
    log_id text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    held_as text NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    stream text,
    type text,
    epoch integer,
    sequence integer,
    key text,
    value bytea NOT NULL,
    event_time timestamp with time zone,
    appended_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_held_record_held_as CHECK ((held_as = ANY (ARRAY['parked'::text, 'waiting'::text, 'refused'::text])))
);


--
-- Name: obs; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.obs (
    id uuid NOT NULL,
    turn_id uuid NOT NULL,
    obs_type text NOT NULL,
    screenshot_uri text,
    text_content text,
    model_input_json jsonb,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_obs_obs_type CHECK ((obs_type = ANY (ARRAY['screenshot_before'::text, 'screenshot_after'::text, 'model_response'::text, 'text'::text])))
);


--
-- Name: projection; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.projection (
    one integer NOT NULL,
    build_id uuid NOT NULL,
    version integer NOT NULL,
    catalogue_hash text NOT NULL,
    log_id text,
    CONSTRAINT ck_projection_one CHECK ((one = 1))
);


--
-- Name: reader_position; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.reader_position (
    topic text NOT NULL,
    partition integer NOT NULL,
    next_offset bigint NOT NULL,
    appended_at timestamp with time zone,
    num_events bigint NOT NULL,
    num_duplicates bigint NOT NULL
)
WITH (fillfactor='70');


--
-- Name: rollout; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.rollout (
    id uuid NOT NULL,
    training_id uuid,
    source_type text NOT NULL,
    step_id uuid,
    eval_id uuid,
    baseline_id uuid,
    group_id uuid NOT NULL,
    env_id uuid,
    rollout_id text NOT NULL,
    batch integer NOT NULL,
    group_num integer NOT NULL,
    env_index integer NOT NULL,
    attempt integer NOT NULL,
    task_id uuid NOT NULL,
    model_path text,
    policy_version integer NOT NULL,
    is_eval boolean NOT NULL,
    seed bigint NOT NULL,
    current_turn integer NOT NULL,
    env_creation_time double precision,
    agent_init_time double precision,
    task_start_time timestamp with time zone,
    task_end_time timestamp with time zone,
    validation_time double precision,
    rollout_time double precision,
    task_completed boolean,
    task_success boolean,
    agent_reported_success boolean,
    validation_passed boolean,
    num_turns integer,
    max_turns integer NOT NULL,
    reward double precision,
    temperature double precision NOT NULL,
    num_tokens bigint,
    num_total_actions integer,
    consecutive_repeated_actions integer,
    parse_errors integer,
    tool_name_errors integer,
    tool_arg_errors integer,
    runtime_errors integer,
    ran_out_of_turns boolean,
    attempted_completion boolean,
    turn_first_success integer,
    turn_task_completed integer,
    error_type text,
    errors jsonb,
    summary_json jsonb,
    trajectory_path text,
    trajectory_data_json jsonb,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_rollout_one_source CHECK ((num_nonnulls(step_id, eval_id, baseline_id) = 1))
)
WITH (fillfactor='70');


--
-- Name: sample; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.sample (
    id uuid NOT NULL,
    step_id uuid NOT NULL,
    group_id uuid NOT NULL,
    rollout_id uuid NOT NULL,
    advantage double precision,
    reward double precision NOT NULL,
    policy_version integer NOT NULL,
    staleness integer NOT NULL,
    num_tokens integer NOT NULL,
    used boolean NOT NULL,
    drop_reason text,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: status_history; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.status_history (
    id uuid NOT NULL,
    entity_type text NOT NULL,
    entity_id uuid NOT NULL,
    old_status text,
    new_status text NOT NULL,
    progress_percent double precision,
    status_message text,
    metadata_json jsonb NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    stream text NOT NULL,
    epoch integer NOT NULL,
    sequence integer NOT NULL
);


--
-- Name: step; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.step (
    id uuid NOT NULL,
    training_id uuid NOT NULL,
    generation integer NOT NULL,
    step integer NOT NULL,
    superseded boolean NOT NULL,
    batch integer NOT NULL,
    rollout_progress double precision NOT NULL,
    training_progress double precision NOT NULL,
    rollout_start_time timestamp with time zone,
    rollout_end_time timestamp with time zone,
    training_start_time timestamp with time zone,
    training_end_time timestamp with time zone,
    learning_rate double precision NOT NULL,
    model_path text,
    checkpoint_path text,
    policy_version integer,
    loss double precision,
    kl_divergence double precision,
    policy_gradient_norm double precision,
    reward_mean double precision,
    reward_std double precision,
    num_trajectories integer,
    num_tokens bigint,
    metrics_json jsonb,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    avg_turn_time double precision,
    estimated_total_time double precision,
    estimated_remaining_time double precision
)
WITH (fillfactor='70');


--
-- Name: stream_position; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.stream_position (
    stream text NOT NULL,
    epoch integer NOT NULL,
    sequence integer NOT NULL,
    source text NOT NULL,
    ends jsonb NOT NULL,
    refused jsonb NOT NULL,
    statuses jsonb NOT NULL,
    parked_since timestamp with time zone,
    abandoned boolean NOT NULL,
    num_waiting integer NOT NULL,
    last_event_at timestamp with time zone
)
WITH (fillfactor='70');


--
-- Name: task; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.task (
    id uuid NOT NULL,
    task_id text NOT NULL,
    definition_hash text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    difficulty text,
    category text,
    max_steps integer NOT NULL,
    validation_type text,
    validation_query text,
    expected_result text,
    tags jsonb NOT NULL,
    prerequisites jsonb NOT NULL,
    app_name text,
    source_type text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);


--
-- Name: training; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.training (
    id uuid NOT NULL,
    run_name text NOT NULL,
    kind text NOT NULL,
    generation integer NOT NULL,
    log_path text,
    model_name text NOT NULL,
    lora_rank integer,
    learning_rate double precision NOT NULL,
    batch_size integer NOT NULL,
    group_size integer NOT NULL,
    groups_per_batch integer NOT NULL,
    max_tokens integer NOT NULL,
    temperature double precision NOT NULL,
    kl_penalty_coef double precision NOT NULL,
    num_substeps integer NOT NULL,
    max_turns integer NOT NULL,
    seed bigint NOT NULL,
    box_type text NOT NULL,
    renderer_name text,
    wandb_project text,
    wandb_name text,
    current_step integer NOT NULL,
    total_steps integer NOT NULL,
    last_heartbeat timestamp with time zone,
    checkpoint_path text,
    config_json jsonb NOT NULL,
    status text NOT NULL,
    progress_percent double precision NOT NULL,
    current_phase text,
    status_message text,
    error_message text,
    start_time timestamp with time zone,
    end_time timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    avg_turn_time double precision,
    estimated_total_time double precision,
    estimated_remaining_time double precision
)
WITH (fillfactor='70');


--
-- Name: turn; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.turn (
    id uuid NOT NULL,
    rollout_id uuid NOT NULL,
    turn integer NOT NULL,
    start_time timestamp with time zone NOT NULL,
    end_time timestamp with time zone NOT NULL,
    turn_time double precision NOT NULL,
    reward double precision NOT NULL,
    episode_done boolean NOT NULL,
    policy_version integer NOT NULL,
    metrics_json jsonb NOT NULL,
    model_response text NOT NULL,
    stop_reason text,
    num_tokens integer,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: validation; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.validation (
    id uuid NOT NULL,
    stream text NOT NULL,
    rollout_id uuid NOT NULL,
    validator_id uuid NOT NULL,
    rank integer NOT NULL,
    validation_time timestamp with time zone NOT NULL,
    validation_query text NOT NULL,
    expected_result text,
    actual_result text,
    success boolean NOT NULL,
    execution_time double precision NOT NULL,
    error_message text,
    details_json jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: validator; Type: TABLE; Schema: cua; Owner: -
--

CREATE TABLE cua.validator (
    id uuid NOT NULL,
    task_id uuid NOT NULL,
    validator_type text NOT NULL,
    validation_query text NOT NULL,
    validation_method text NOT NULL,
    config_json jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: alembic_version; Type: TABLE; Schema: cua_ops; Owner: -
--

CREATE TABLE cua_ops.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: lease; Type: TABLE; Schema: cua_ops; Owner: -
--

CREATE TABLE cua_ops.lease (
    name character varying NOT NULL,
    holder text NOT NULL,
    backend_pid integer NOT NULL,
    backend_start timestamp with time zone NOT NULL,
    renewed_at timestamp with time zone NOT NULL,
    projection_version integer NOT NULL
);


--
-- Name: operator_drop; Type: TABLE; Schema: cua_ops; Owner: -
--

CREATE TABLE cua_ops.operator_drop (
    id bigint NOT NULL,
    scope text NOT NULL,
    stream text,
    value_sha256 text NOT NULL,
    from_epoch integer,
    from_sequence integer,
    made_at timestamp with time zone NOT NULL,
    made_by text NOT NULL,
    reason text,
    CONSTRAINT ck_operator_drop_scope CHECK ((scope = ANY (ARRAY['record'::text, 'rest'::text, 'gap'::text])))
);


--
-- Name: operator_drop_id_seq; Type: SEQUENCE; Schema: cua_ops; Owner: -
--

ALTER TABLE cua_ops.operator_drop ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME cua_ops.operator_drop_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Data for Name: action; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.action VALUES ('8a259b7b-cf38-5ce2-8b28-67763a330560', '7aa356d3-6954-5bcb-b448-08d25e1c2343', 0, 'click', '{"x": 225, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "62,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.action VALUES ('9c52ac13-2c74-5d59-89da-5b38714c363b', '90d741f7-c97c-5ec0-8ee6-ecb05ef7ee1c', 0, 'swipe', '{"x": 181, "y": 195, "to_x": 181, "to_y": 451, "type": "swipe"}', 'swipe', '{"text": "down"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.485129+00');
INSERT INTO cua.action VALUES ('2cb278ea-a9da-5f4c-b862-f6b9b1b7a111', '82aee2c5-b25c-524a-9dfc-e977654f6aa6', 0, 'terminate', '{"type": "terminate", "status": "success"}', 'terminate', '{"text": "success"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.485701+00');
INSERT INTO cua.action VALUES ('dcd0abc3-feba-5c0b-97bc-3c90c8fa6846', '75023cb4-7279-5afa-88ce-49df712673ff', 0, 'swipe', '{"x": 289, "y": 323, "to_x": 73, "to_y": 323, "type": "swipe"}', 'swipe', '{"text": "left"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.action VALUES ('0ee579bf-432a-5c5c-aa07-a7299538d852', 'b1ace16a-0425-5a2c-bcba-cffb87f5e4ff', 0, 'swipe', '{"x": 181, "y": 451, "to_x": 181, "to_y": 195, "type": "swipe"}', 'swipe', '{"text": "up"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.548411+00');
INSERT INTO cua.action VALUES ('42ef119e-5022-5a88-951b-689687430c71', 'ab16835a-eba3-53af-ab48-caeb4ea0c0c7', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.549288+00');
INSERT INTO cua.action VALUES ('76fb03f3-2659-51a7-8be5-aef403090cdb', 'f612d32c-b338-5be0-a777-ee6bb7e747c8', 0, 'click', '{"x": 181, "y": 438, "type": "click", "button": "left"}', 'click', '{"text": "50,68"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.549709+00');
INSERT INTO cua.action VALUES ('bd667205-f7ad-5477-87bf-999019d09a5b', '9908bbfc-bb33-5640-8d3c-e9b694caab82', 0, 'click', '{"x": 268, "y": 240, "type": "click", "button": "left"}', 'click', '{"text": "74,37"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.567718+00');
INSERT INTO cua.action VALUES ('b7c2087e-6543-5e21-b0bf-b903130b6c93', 'bbbf0bd8-6b1c-5919-9a80-c757b4b9fdb3', 0, 'click', '{"x": 138, "y": 67, "type": "click", "button": "left"}', 'click', '{"text": "38,10"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.568574+00');
INSERT INTO cua.action VALUES ('c9353f7d-6510-5b31-9f67-0f62c8d5a5b8', '3860064b-85f3-598c-9083-78702a3beecb', 0, 'click', '{"x": 181, "y": 617, "type": "click", "button": "left"}', 'click', '{"text": "50,96"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.569127+00');
INSERT INTO cua.action VALUES ('a1af8ae1-4c76-586b-b174-b31ce27e0391', '126322c2-fb3a-586d-b416-22d1ea2701bc', 0, 'click', '{"x": 293, "y": 188, "type": "click", "button": "left"}', 'click', '{"text": "81,29"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.569655+00');
INSERT INTO cua.action VALUES ('e83f982b-651f-5047-8a7c-34f9190ac623', '32fa547f-cb72-545e-a7cd-83f7398f03e8', 0, 'swipe', '{"x": 73, "y": 323, "to_x": 289, "to_y": 323, "type": "swipe"}', 'swipe', '{"text": "right"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.action VALUES ('3da80dad-cc92-53be-ae05-432021090172', '4ff51f3a-fc3c-5311-991d-fa5081cfbefa', 0, 'click', '{"x": 135, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "37,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.597417+00');
INSERT INTO cua.action VALUES ('8c96c0f9-a588-5b5d-96cc-d7cce50e8c7c', '2b964ea7-08c8-50ed-ba98-82f2456690ae', 0, 'click', '{"x": 181, "y": 496, "type": "click", "button": "left"}', 'click', '{"text": "50,77"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.608814+00');
INSERT INTO cua.action VALUES ('82fc967d-4038-5034-bc17-e53c88382c2b', 'd634cb6e-62af-5505-bfb1-5598fc451fe9', 0, 'terminate', '{"type": "terminate", "status": "success"}', 'terminate', '{"text": "success"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.609317+00');
INSERT INTO cua.action VALUES ('eef52af3-0e9f-5b52-a7e5-8d53ed946853', '43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.action VALUES ('b1e1c365-4b65-596d-bb63-3891f666679d', '965370b0-55be-580c-b836-0809c0067017', 0, 'click', '{"x": 210, "y": 534, "type": "click", "button": "left"}', 'click', '{"text": "58,83"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.62825+00');
INSERT INTO cua.action VALUES ('9217b396-5313-54de-b0e1-4b3e048f1a5e', '5fb7fcae-7c12-50e3-b868-e248fe6ebedc', 0, 'click', '{"x": 174, "y": 476, "type": "click", "button": "left"}', 'click', '{"text": "48,74"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.628905+00');
INSERT INTO cua.action VALUES ('f2b2d347-db2b-55a9-b422-5cecb83c66e4', 'b2d2da9a-4dcc-5727-9a6b-3562a0867f3d', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.629389+00');
INSERT INTO cua.action VALUES ('66a062da-7847-5b08-8533-63c389d3aec0', 'df30ed11-1eb7-51a1-b3df-64bd900a78ed', 0, 'click', '{"x": 135, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "37,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.629953+00');
INSERT INTO cua.action VALUES ('14c6f448-ab0a-5dbf-9a13-e4596c033e85', '57c34461-d4da-58a8-95f6-a05785208eb4', 0, 'swipe', '{"x": 73, "y": 323, "to_x": 289, "to_y": 323, "type": "swipe"}', 'swipe', '{"text": "right"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.action VALUES ('5f55a94a-f7e9-5037-a698-de13df103483', 'cbe747df-296a-5a9e-917b-064e1a19851e', 0, 'click', '{"x": 315, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "87,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.688262+00');
INSERT INTO cua.action VALUES ('365fefc5-bece-5897-85bb-ba296fbac01c', '5a1698e7-fadc-5e67-9deb-67b0fd082803', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.688955+00');
INSERT INTO cua.action VALUES ('4a62d238-d1dc-5bbb-b99d-4e04b1c5a551', '74d88570-cba9-58b8-8371-6a47cc4e84b8', 0, 'click', '{"x": 336, "y": 329, "type": "click", "button": "left"}', 'click', '{"text": "93,51"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.705244+00');
INSERT INTO cua.action VALUES ('09e73bc2-f15f-522d-8c40-61855247089a', '2f9438b0-afc9-5594-8640-c01fc4e0ef3b', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.705955+00');
INSERT INTO cua.action VALUES ('e13f3ba9-968d-5344-ba43-fbe2b15f6c35', '02ed438e-332b-508a-b31d-aa4ffcce381f', 0, 'click', '{"x": 131, "y": 412, "type": "click", "button": "left"}', 'click', '{"text": "36,64"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.720818+00');
INSERT INTO cua.action VALUES ('62c68518-2e53-5e31-a403-8728aca1ebb5', '745f257f-9de9-5f36-852c-43824e63d6ad', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.724183+00');
INSERT INTO cua.action VALUES ('f262712b-8955-5b10-8d47-5de5784e2054', 'e292e8b4-f103-5831-88b9-73f1609fafa4', 0, 'click', '{"x": 174, "y": 540, "type": "click", "button": "left"}', 'click', '{"text": "48,84"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.735709+00');
INSERT INTO cua.action VALUES ('e115c58f-af3c-55b0-a244-7dde14a995b5', '3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 0, 'click', '{"x": 19, "y": 67, "type": "click", "button": "left"}', 'click', '{"text": "5,10"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.action VALUES ('cab88f6c-5321-5913-b7d3-92c2c8c42696', '7fa2d177-bcb4-55d5-a40b-438a257c8f94', 0, 'click', '{"x": 315, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "87,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.758519+00');
INSERT INTO cua.action VALUES ('e00bce38-bfc8-5b97-ac3a-b02f1bbadaab', '87d6b461-ceda-52c3-82f9-b8bf430c770b', 0, 'wait', '{"type": "wait", "duration_s": 1.0}', 'wait', '{"text": ""}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.759359+00');
INSERT INTO cua.action VALUES ('8b8a151d-89f0-559a-adfb-d64528048bdc', '08e93e1d-0dec-5d83-8e12-2ac535335324', 0, 'swipe', '{"x": 289, "y": 323, "to_x": 73, "to_y": 323, "type": "swipe"}', 'swipe', '{"text": "left"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.764314+00');
INSERT INTO cua.action VALUES ('1ed4d69e-f366-5b13-9b80-fb8ce7265bb2', '09899171-63fc-5b8c-9082-ee145f83c226', 0, 'click', '{"x": 113, "y": 598, "type": "click", "button": "left"}', 'click', '{"text": "31,93"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.76702+00');
INSERT INTO cua.action VALUES ('0efe44fc-c295-59c1-b9b5-a4211bb28fdb', '611ce53d-ba50-5033-9396-bf0b9a94ea46', 0, 'click', '{"x": 59, "y": 617, "type": "click", "button": "left"}', 'click', '{"text": "16,96"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.772565+00');
INSERT INTO cua.action VALUES ('8bf88644-2781-510e-96ca-aca7e9cd6bbb', 'a0af39df-4030-5e48-b63a-8c3cdc586454', 0, 'click', '{"x": 315, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "87,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.773318+00');
INSERT INTO cua.action VALUES ('d9d33a89-3789-54b9-831a-c24e3855ec94', '3b737a54-be83-5d22-b620-04ac02bff22e', 0, 'click', '{"x": 181, "y": 496, "type": "click", "button": "left"}', 'click', '{"text": "50,77"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.808307+00');
INSERT INTO cua.action VALUES ('060ec9f6-cf3d-54db-9e61-1a6f6126e887', '44fcdde7-5761-5be4-ae55-c61e11ee4516', 0, 'click', '{"x": 225, "y": 432, "type": "click", "button": "left"}', 'click', '{"text": "62,67"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.action VALUES ('8bafefbf-5daa-55b5-a30e-f2a320943e0e', '4176c380-9fc2-5615-8242-bd57557af166', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.889552+00');
INSERT INTO cua.action VALUES ('43bc4945-210d-5a64-92f3-864727270bee', '1018bfed-b9d7-5d23-b01f-a754157058bc', 0, 'system_button', '{"type": "system_button", "button": "back"}', 'button', '{"text": "back"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.889955+00');
INSERT INTO cua.action VALUES ('bdd9f6b3-b01c-5286-b8a8-e38bf8f43256', '3fea3ea9-a4db-5da0-b89b-6c3c13a254d9', 0, 'click', '{"x": 135, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "37,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.901498+00');
INSERT INTO cua.action VALUES ('9ab8707d-c9e1-556b-9833-adacc44c5f3c', 'b95158f8-29a3-552a-bcbb-5a907d16e1e4', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.902422+00');
INSERT INTO cua.action VALUES ('79924bff-34ca-50b6-a03c-d7125c3cca9b', 'a8581d56-26c0-5e27-a138-0ab67fe23467', 0, 'click', '{"x": 199, "y": 547, "type": "click", "button": "left"}', 'click', '{"text": "55,85"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.912792+00');
INSERT INTO cua.action VALUES ('6b61b95a-b031-5d22-96dc-66864c894661', 'c3572634-dc7f-5bee-9d5a-57cd14f944ea', 0, 'click', '{"x": 41, "y": 297, "type": "click", "button": "left"}', 'click', '{"text": "11,46"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.915994+00');
INSERT INTO cua.action VALUES ('5b99390a-1d75-5c92-a656-d1e9177c49fe', 'd9c03364-0ef4-541c-b4ec-b36af16b2cde', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.916574+00');
INSERT INTO cua.action VALUES ('e819b0fa-0e78-593b-95fc-0eee90a89a39', '955c8ad7-aa43-5ad7-8fa4-37b937d2f596', 0, 'click', '{"x": 135, "y": 246, "type": "click", "button": "left"}', 'click', '{"text": "37,38"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.action VALUES ('c1839366-f93d-56a4-a57a-5e0b9940c309', '12bd0664-f1e3-53da-82eb-b7d9121ee380', 0, 'system_button', '{"type": "system_button", "button": "home"}', 'button', '{"text": "home"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.92312+00');
INSERT INTO cua.action VALUES ('12520a02-ee9d-591b-81a0-13f962d84f5f', '2ab49495-1c18-5fda-aedb-2fc696534d83', 0, 'click', '{"x": 315, "y": 246, "type": "click", "button": "left"}', 'click', '{"text": "87,38"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.930047+00');
INSERT INTO cua.action VALUES ('e4d8953f-3124-52f4-aca8-a5ec4aa83e27', 'f5073023-aa47-51ce-b594-888b9e08213e', 0, 'click', '{"x": 181, "y": 617, "type": "click", "button": "left"}', 'click', '{"text": "50,96"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.930501+00');
INSERT INTO cua.action VALUES ('d345399f-d65e-5cb5-a647-affb656b8aa9', '837b7623-41b2-50bb-b299-8413d5f453c5', 0, 'click', '{"x": 225, "y": 150, "type": "click", "button": "left"}', 'click', '{"text": "62,23"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.964332+00');
INSERT INTO cua.action VALUES ('ea2cb8de-6f4c-5e98-98f8-da6f88ad5e43', '8d4886f3-9f02-5f60-95a3-51412b58a279', 0, 'click', '{"x": 181, "y": 617, "type": "click", "button": "left"}', 'click', '{"text": "50,96"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.965629+00');
INSERT INTO cua.action VALUES ('a97ee203-b53a-5785-b0c8-83cfea6f013f', 'f5af0402-8c3f-57e0-b73a-ff378fe38b93', 0, 'swipe', '{"x": 181, "y": 451, "to_x": 181, "to_y": 195, "type": "swipe"}', 'swipe', '{"text": "up"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.972839+00');
INSERT INTO cua.action VALUES ('22491948-d0a0-5850-811e-786cf60dd181', 'c95766d4-ccb4-5b08-a1b9-4336925ed8e2', 0, 'swipe', '{"x": 289, "y": 323, "to_x": 73, "to_y": 323, "type": "swipe"}', 'swipe', '{"text": "left"}', NULL, NULL, NULL, NULL, NULL, '2025-01-22 03:30:59.973581+00');


--
-- Data for Name: baseline; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.baseline VALUES ('afa00e31-a763-580b-a09d-e885ca529f55', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 0, 0, false, 'oracle', 1, 2, 2, 0.24621267400016222, 0.5, 0.5, 5.5, 1, '{"by_task": {"train_02_enable_wifi": 0.0, "train_01_open_settings": 1.0}, "standard_error": 0.3535533905932738, "test/env/all/reward/total": 0.5, "test/env/all/total_episodes": 2, "test/env/all/turns_per_episode": 5.5}', 'completed', 100, 'rollout', NULL, NULL, '2025-01-22 03:30:59.324705+00', '2025-01-22 03:30:59.570816+00', '2025-01-22 03:30:59.32468+00', '2025-01-22 03:30:59.57086+00', 0.008264163727289997, 0.16800847600006819, 0);


--
-- Data for Name: environment; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.environment VALUES ('20cf18d7-f67b-5927-903b-09f31ac3e2fc', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-475319113826176507-b95738cb', 'android', '2025-01-22 03:30:59.44473+00', '2025-01-22 03:30:59.492124+00', NULL, NULL, '{"seed": 475319113826176507}', '2025-01-22 03:30:59.332417+00', '2025-01-22 03:30:59.492222+00');
INSERT INTO cua.environment VALUES ('7c9474f7-fe16-5390-b246-878267b03efd', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-3323162735078075917-f2f357b0', 'android', '2025-01-22 03:30:59.516603+00', '2025-01-22 03:30:59.570262+00', NULL, NULL, '{"seed": 3323162735078075917}', '2025-01-22 03:30:59.493069+00', '2025-01-22 03:30:59.570446+00');
INSERT INTO cua.environment VALUES ('6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-4302844914413162269-695b6e78', 'android', '2025-01-22 03:30:59.59284+00', '2025-01-22 03:30:59.609538+00', NULL, NULL, '{"seed": 4302844914413162269}', '2025-01-22 03:30:59.577663+00', '2025-01-22 03:30:59.609625+00');
INSERT INTO cua.environment VALUES ('1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-4302844914413162269-b51c767f', 'android', '2025-01-22 03:30:59.611936+00', '2025-01-22 03:30:59.632101+00', NULL, NULL, '{"seed": 4302844914413162269}', '2025-01-22 03:30:59.61102+00', '2025-01-22 03:30:59.632195+00');
INSERT INTO cua.environment VALUES ('8bac2ab6-2359-55c2-97c4-d430150dd343', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-6880101871322594088-42e4f557', 'android', '2025-01-22 03:30:59.676076+00', '2025-01-22 03:30:59.736178+00', NULL, NULL, '{"seed": 6880101871322594088}', '2025-01-22 03:30:59.640526+00', '2025-01-22 03:30:59.736281+00');
INSERT INTO cua.environment VALUES ('1d401587-32aa-545b-a913-898967844396', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-6880101871322594088-fcd636fc', 'android', '2025-01-22 03:30:59.757135+00', '2025-01-22 03:30:59.808549+00', NULL, NULL, '{"seed": 6880101871322594088}', '2025-01-22 03:30:59.756381+00', '2025-01-22 03:30:59.808618+00');
INSERT INTO cua.environment VALUES ('01951109-a548-5e74-b708-6ea73797a004', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-5470347022357084417-31d1ac13', 'android', '2025-01-22 03:30:59.880044+00', '2025-01-22 03:30:59.916689+00', NULL, NULL, '{"seed": 5470347022357084417}', '2025-01-22 03:30:59.873274+00', '2025-01-22 03:30:59.916748+00');
INSERT INTO cua.environment VALUES ('1ae43d2b-2585-54f9-8a30-f16a225a1650', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'terminated', 'sim-5470347022357084417-e752cb93', 'android', '2025-01-22 03:30:59.917663+00', '2025-01-22 03:30:59.973726+00', NULL, NULL, '{"seed": 5470347022357084417}', '2025-01-22 03:30:59.917333+00', '2025-01-22 03:30:59.973788+00');
INSERT INTO cua.environment VALUES ('c4754f12-eb34-5a30-ab88-dea46ff27704', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 2821501840581198158}', '2025-01-22 03:30:59.974476+00', '2025-01-22 03:30:59.974505+00');
INSERT INTO cua.environment VALUES ('2942d108-24f0-5ca2-af8e-69b3c9535bfd', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 475319113826176507}', '2025-01-22 03:31:01.211401+00', '2025-01-22 03:31:01.211425+00');
INSERT INTO cua.environment VALUES ('065147ff-0cf6-55ff-b4e3-a2f25f2472d4', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 555165376033445895}', '2025-01-22 03:31:01.228221+00', '2025-01-22 03:31:01.228257+00');
INSERT INTO cua.environment VALUES ('d51e62be-0eda-54c6-a12f-a6be617936c9', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 7011727086573478392}', '2025-01-22 03:31:01.236227+00', '2025-01-22 03:31:01.236256+00');
INSERT INTO cua.environment VALUES ('f9ed6053-a703-5ff5-b6a8-5873da199c0c', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 4950794350063725158}', '2025-01-22 03:31:01.243634+00', '2025-01-22 03:31:01.243664+00');
INSERT INTO cua.environment VALUES ('ba119b20-fe3c-5f80-beed-4c7565915cbc', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 3323162735078075917}', '2025-01-22 03:31:01.273834+00', '2025-01-22 03:31:01.288174+00');
INSERT INTO cua.environment VALUES ('85ec85d8-1c93-541d-a5ea-0934898bfd7f', NULL, 'android_sim', 'creating', NULL, 'android', NULL, NULL, NULL, NULL, '{"seed": 4170383718108371946}', '2025-01-22 03:31:01.322267+00', '2025-01-22 03:31:01.322291+00');


--
-- Data for Name: eval; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.eval VALUES ('1607a14a-ac04-589e-96af-99553bcee56a', 'manual', NULL, NULL, NULL, false, 'oracle', 0, 8, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'running', 0, 'rollout', NULL, NULL, '2025-01-22 03:31:01.206155+00', NULL, '2025-01-22 03:31:01.206138+00', '2025-01-22 03:31:01.20618+00', NULL, NULL, NULL);


--
-- Data for Name: group; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua."group" VALUES ('91e41f64-ce71-5190-a8cd-fa6f2b4e35a9', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'baseline', NULL, NULL, 'afa00e31-a763-580b-a09d-e885ca529f55', 0, 0, 1, 1, 1, 0, 1, NULL, '["6a8f26a6-6a86-5ffd-b129-6d53172e1dc5"]', '{"num_turns": 3, "num_tokens": 0}', 'completed', 100, NULL, NULL, NULL, '2025-01-22 03:30:59.332093+00', '2025-01-22 03:30:59.492444+00', '2025-01-22 03:30:59.324818+00', '2025-01-22 03:30:59.492483+00', 0.013278939333455734, 0, 0);
INSERT INTO cua."group" VALUES ('9152c67d-72ad-58bd-9758-f064b92b432a', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'baseline', NULL, NULL, 'afa00e31-a763-580b-a09d-e885ca529f55', 1, 0, 1, 1, 0, 0, 0, NULL, '["a3edd95a-6bf3-5b4d-ae13-631a8a603e9d"]', '{"num_turns": 8, "num_tokens": 0}', 'completed', 100, NULL, NULL, NULL, '2025-01-22 03:30:59.49293+00', '2025-01-22 03:30:59.5707+00', '2025-01-22 03:30:59.32484+00', '2025-01-22 03:30:59.570741+00', 0.008264163727289997, 0.16800847600006819, 0);
INSERT INTO cua."group" VALUES ('90929f4f-ad17-582d-966c-16be5e3b986a', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, 0, 0, 2, 2, 1, 0, 2, 'zero_variance', '["e4dbe5f7-a949-5934-a0c6-ce17add632fd", "9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f"]', '{"num_turns": 9, "num_tokens": 0}', 'completed', 100, NULL, NULL, NULL, '2025-01-22 03:30:59.577524+00', '2025-01-22 03:30:59.632424+00', '2025-01-22 03:30:59.577227+00', '2025-01-22 03:30:59.832325+00', 0.006161130399914327, 0.16800847600006819, 0);
INSERT INTO cua."group" VALUES ('ca16c0f7-07c8-5a5f-8b29-527954634705', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, 1, 0, 2, 2, 0, 0, 0, 'zero_variance', '["53b9bec9-6400-5533-9b41-982935794d5a", "b9f769d0-5386-5b75-8ada-91e523774a26"]', '{"num_turns": 16, "num_tokens": 0}', 'completed', 100, NULL, NULL, NULL, '2025-01-22 03:30:59.640247+00', '2025-01-22 03:30:59.808936+00', '2025-01-22 03:30:59.577248+00', '2025-01-22 03:30:59.83241+00', 0.006397507277723789, 0.16800847600006819, 0);
INSERT INTO cua."group" VALUES ('ee60e453-9215-5141-b33c-e40dd24113a2', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, NULL, 0, 1, 2, 2, 0, 0, 0, NULL, '["79d60687-f5e7-5984-bc4b-bbeed4908886", "0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f"]', '{"num_turns": 16, "num_tokens": 0}', 'completed', 100, NULL, NULL, NULL, '2025-01-22 03:30:59.87314+00', '2025-01-22 03:30:59.973984+00', '2025-01-22 03:30:59.87281+00', '2025-01-22 03:30:59.974018+00', 0.006149443173066734, 0.16800847600006819, 0);
INSERT INTO cua."group" VALUES ('03a3d66d-a092-5e39-97ea-af8ae45b850e', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', false, 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, NULL, 1, 1, 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'running', 0, NULL, NULL, NULL, '2025-01-22 03:30:59.974297+00', NULL, '2025-01-22 03:30:59.872841+00', '2025-01-22 03:30:59.974318+00', NULL, NULL, NULL);
INSERT INTO cua."group" VALUES ('504fb36b-d468-5bf7-96d7-ea2df7401ed8', NULL, false, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, 0, 0, 4, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'running', 0, NULL, NULL, NULL, '2025-01-22 03:31:01.2112+00', NULL, '2025-01-22 03:31:01.206276+00', '2025-01-22 03:31:01.211246+00', NULL, NULL, NULL);
INSERT INTO cua."group" VALUES ('a54368a5-57ab-5716-a771-2281c3a1e74f', NULL, false, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, 1, 0, 4, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'running', 0, NULL, NULL, NULL, '2025-01-22 03:31:01.273458+00', NULL, '2025-01-22 03:31:01.206305+00', '2025-01-22 03:31:01.273538+00', NULL, NULL, NULL);


--
-- Data for Name: held_record; Type: TABLE DATA; Schema: cua; Owner: -
--



--
-- Data for Name: obs; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.obs VALUES ('75bb6063-f805-5f4b-b17f-2457c05ac77f', '7aa356d3-6954-5bcb-b448-08d25e1c2343', 'screenshot_before', 'blob:sha256:21fe0d0891870ea01d38e6cdcc80c1454af16ae7aa4cd2c4114782f4f74c7a70', NULL, NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.obs VALUES ('74ee0a95-9245-5f59-98b8-a62c2e2900c2', '7aa356d3-6954-5bcb-b448-08d25e1c2343', 'text', NULL, 'Open the Settings app.', NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.obs VALUES ('c8d11fbb-303e-53a2-ab87-ec6deed8ea63', '7aa356d3-6954-5bcb-b448-08d25e1c2343', 'model_response', NULL, 'click(62,85)', NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.obs VALUES ('45cf013b-f949-5990-bce5-671f2d4b0bfe', '7aa356d3-6954-5bcb-b448-08d25e1c2343', 'screenshot_after', 'blob:sha256:60b415e3d4558b08385377f04b8f3cb2b1bfa1e46181768eaa80791aa318edb1', NULL, NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.obs VALUES ('dd6f2a97-3fe4-5071-af3d-b1bf5d81696c', '90d741f7-c97c-5ec0-8ee6-ecb05ef7ee1c', 'screenshot_before', 'blob:sha256:60b415e3d4558b08385377f04b8f3cb2b1bfa1e46181768eaa80791aa318edb1', NULL, NULL, '2025-01-22 03:30:59.485129+00');
INSERT INTO cua.obs VALUES ('0db3950c-218b-51c7-b804-0946b317373a', '90d741f7-c97c-5ec0-8ee6-ecb05ef7ee1c', 'model_response', NULL, 'swipe(down)', NULL, '2025-01-22 03:30:59.485129+00');
INSERT INTO cua.obs VALUES ('4c99d8d1-9ce4-53aa-a218-8ecbc149bd70', '90d741f7-c97c-5ec0-8ee6-ecb05ef7ee1c', 'screenshot_after', 'blob:sha256:b7833dcb8914afd8e08301cd13d48f06ecbcd965f5e90382e68bea9e7262bb29', NULL, NULL, '2025-01-22 03:30:59.485129+00');
INSERT INTO cua.obs VALUES ('72079434-226c-5252-b810-b940f05c9efe', '82aee2c5-b25c-524a-9dfc-e977654f6aa6', 'screenshot_before', 'blob:sha256:b7833dcb8914afd8e08301cd13d48f06ecbcd965f5e90382e68bea9e7262bb29', NULL, NULL, '2025-01-22 03:30:59.485701+00');
INSERT INTO cua.obs VALUES ('0cfd0d64-5b4f-5de2-88f4-fcf65bdc8beb', '82aee2c5-b25c-524a-9dfc-e977654f6aa6', 'model_response', NULL, 'terminate(success)', NULL, '2025-01-22 03:30:59.485701+00');
INSERT INTO cua.obs VALUES ('3f2d8b89-77ba-53b1-b5f0-0278cd0f1b52', '82aee2c5-b25c-524a-9dfc-e977654f6aa6', 'screenshot_after', 'blob:sha256:b7833dcb8914afd8e08301cd13d48f06ecbcd965f5e90382e68bea9e7262bb29', NULL, NULL, '2025-01-22 03:30:59.485701+00');
INSERT INTO cua.obs VALUES ('e8496384-53ef-55bc-aad8-2b3e2445752f', '75023cb4-7279-5afa-88ce-49df712673ff', 'screenshot_before', 'blob:sha256:7b29c02893d2b90e3de286f2b5defa0ed142597b246178b98ef1e95c1a5e4c74', NULL, NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.obs VALUES ('8e3b1ffb-c8e0-5d9e-9bca-b140c61c6daa', '75023cb4-7279-5afa-88ce-49df712673ff', 'text', NULL, 'Turn Wi-Fi on in Settings.', NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.obs VALUES ('cff4f0a0-6234-5e68-ac1b-6b25912b7c15', '75023cb4-7279-5afa-88ce-49df712673ff', 'model_response', NULL, 'swipe(left)', NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.obs VALUES ('81c2966b-77b9-5ce4-8642-5021426e3bb2', '75023cb4-7279-5afa-88ce-49df712673ff', 'screenshot_after', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.obs VALUES ('87faa40d-c8d3-5803-a3ed-4378ddeacae2', 'b1ace16a-0425-5a2c-bcba-cffb87f5e4ff', 'screenshot_before', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.548411+00');
INSERT INTO cua.obs VALUES ('93f9ec36-58af-58ce-8665-e0d52f815362', 'b1ace16a-0425-5a2c-bcba-cffb87f5e4ff', 'model_response', NULL, 'swipe(up)', NULL, '2025-01-22 03:30:59.548411+00');
INSERT INTO cua.obs VALUES ('4fc21609-f457-56e2-a42f-fd374cba278c', 'b1ace16a-0425-5a2c-bcba-cffb87f5e4ff', 'screenshot_after', 'blob:sha256:557f684706e1fc996b3cba054e96f8fe6993102fa50ca6bfa926237543722af7', NULL, NULL, '2025-01-22 03:30:59.548411+00');
INSERT INTO cua.obs VALUES ('ebf96086-d1e9-5d47-b168-e9224d478d33', 'ab16835a-eba3-53af-ab48-caeb4ea0c0c7', 'screenshot_before', 'blob:sha256:557f684706e1fc996b3cba054e96f8fe6993102fa50ca6bfa926237543722af7', NULL, NULL, '2025-01-22 03:30:59.549288+00');
INSERT INTO cua.obs VALUES ('0ce3a012-644e-5651-b3d2-e927e47956c4', 'ab16835a-eba3-53af-ab48-caeb4ea0c0c7', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.549288+00');
INSERT INTO cua.obs VALUES ('506caeba-f05f-5713-8c53-bfc2ef522605', 'ab16835a-eba3-53af-ab48-caeb4ea0c0c7', 'screenshot_after', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.549288+00');
INSERT INTO cua.obs VALUES ('247e6b76-e26e-505d-9f0d-5fb151c1ca7a', 'f612d32c-b338-5be0-a777-ee6bb7e747c8', 'screenshot_before', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.549709+00');
INSERT INTO cua.obs VALUES ('68acf740-d8e3-5c7b-aa3d-74bf65e604b6', 'f612d32c-b338-5be0-a777-ee6bb7e747c8', 'model_response', NULL, 'click(50,68)', NULL, '2025-01-22 03:30:59.549709+00');
INSERT INTO cua.obs VALUES ('71985ba1-e333-5737-a27b-af4318329e8a', 'f612d32c-b338-5be0-a777-ee6bb7e747c8', 'screenshot_after', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.549709+00');
INSERT INTO cua.obs VALUES ('7a3a8a1c-5a9a-5d77-9633-a1ed18047ce8', '9908bbfc-bb33-5640-8d3c-e9b694caab82', 'screenshot_before', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.567718+00');
INSERT INTO cua.obs VALUES ('ffc01df2-ccb5-5ae6-b969-00c57c18fce2', '9908bbfc-bb33-5640-8d3c-e9b694caab82', 'model_response', NULL, 'click(74,37)', NULL, '2025-01-22 03:30:59.567718+00');
INSERT INTO cua.obs VALUES ('93dc2813-e1a1-58db-9f86-8bd75e32ec29', '9908bbfc-bb33-5640-8d3c-e9b694caab82', 'screenshot_after', 'blob:sha256:c03b364bed310d907104d8e72d3acb832d70764e8a28d916808f95dbecf1dfeb', NULL, NULL, '2025-01-22 03:30:59.567718+00');
INSERT INTO cua.obs VALUES ('8582f4cf-89d9-5c7a-9c41-00216feb2a28', 'bbbf0bd8-6b1c-5919-9a80-c757b4b9fdb3', 'screenshot_before', 'blob:sha256:c03b364bed310d907104d8e72d3acb832d70764e8a28d916808f95dbecf1dfeb', NULL, NULL, '2025-01-22 03:30:59.568574+00');
INSERT INTO cua.obs VALUES ('5e1ad7be-21df-546d-9ef6-7ac3e4f9363e', 'bbbf0bd8-6b1c-5919-9a80-c757b4b9fdb3', 'model_response', NULL, 'click(38,10)', NULL, '2025-01-22 03:30:59.568574+00');
INSERT INTO cua.obs VALUES ('c95ba48d-8f07-5360-88d0-160ad5d29d61', 'bbbf0bd8-6b1c-5919-9a80-c757b4b9fdb3', 'screenshot_after', 'blob:sha256:c03b364bed310d907104d8e72d3acb832d70764e8a28d916808f95dbecf1dfeb', NULL, NULL, '2025-01-22 03:30:59.568574+00');
INSERT INTO cua.obs VALUES ('f150431a-f72f-5d68-b898-913ed1108d76', '3860064b-85f3-598c-9083-78702a3beecb', 'screenshot_before', 'blob:sha256:c03b364bed310d907104d8e72d3acb832d70764e8a28d916808f95dbecf1dfeb', NULL, NULL, '2025-01-22 03:30:59.569127+00');
INSERT INTO cua.obs VALUES ('b082bcda-29a9-5c37-a50a-4172c479f9d6', '3860064b-85f3-598c-9083-78702a3beecb', 'model_response', NULL, 'click(50,96)', NULL, '2025-01-22 03:30:59.569127+00');
INSERT INTO cua.obs VALUES ('816bbec6-4356-597f-8199-20eaac56f434', '3860064b-85f3-598c-9083-78702a3beecb', 'screenshot_after', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.569127+00');
INSERT INTO cua.obs VALUES ('ec64541f-405c-5f3f-91be-7bc4784a4467', '126322c2-fb3a-586d-b416-22d1ea2701bc', 'screenshot_before', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.569655+00');
INSERT INTO cua.obs VALUES ('c804c518-988b-5ff5-b2e7-0dea7778510a', '126322c2-fb3a-586d-b416-22d1ea2701bc', 'model_response', NULL, 'click(81,29)', NULL, '2025-01-22 03:30:59.569655+00');
INSERT INTO cua.obs VALUES ('0e75ad76-3e0d-545e-af8e-6380d6927eb4', '126322c2-fb3a-586d-b416-22d1ea2701bc', 'screenshot_after', 'blob:sha256:0848100190c0f0eff31e59d5e46e7536ec6431e38fbd1a7c83b73f81a0e84982', NULL, NULL, '2025-01-22 03:30:59.569655+00');
INSERT INTO cua.obs VALUES ('c5eadf9d-07bf-5dca-aaef-63ce6ccae445', '32fa547f-cb72-545e-a7cd-83f7398f03e8', 'screenshot_before', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.obs VALUES ('90c78a42-96ee-50ec-9ccd-4cb6479c3a47', '32fa547f-cb72-545e-a7cd-83f7398f03e8', 'text', NULL, 'Open the Settings app.', NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.obs VALUES ('a0f28006-7e21-564f-917c-cbd8d3597925', '32fa547f-cb72-545e-a7cd-83f7398f03e8', 'model_response', NULL, 'swipe(right)', NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.obs VALUES ('2e27b4bc-f44b-55f0-b0ee-2ebf9f677203', '32fa547f-cb72-545e-a7cd-83f7398f03e8', 'screenshot_after', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.obs VALUES ('114869ba-7d1c-515c-b021-a3bf50abe6d1', '4ff51f3a-fc3c-5311-991d-fa5081cfbefa', 'screenshot_before', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.597417+00');
INSERT INTO cua.obs VALUES ('44f28af9-d890-5164-8a22-dbefd8e8a2c2', '4ff51f3a-fc3c-5311-991d-fa5081cfbefa', 'model_response', NULL, 'click(37,85)', NULL, '2025-01-22 03:30:59.597417+00');
INSERT INTO cua.obs VALUES ('cf534fc4-b5d9-5a0e-b2bf-1316e5dfa5c7', '4ff51f3a-fc3c-5311-991d-fa5081cfbefa', 'screenshot_after', 'blob:sha256:4b046a7cdbf3a81e412799b2ec7e33ef74740f5212183cce7b54b64ffd48e929', NULL, NULL, '2025-01-22 03:30:59.597417+00');
INSERT INTO cua.obs VALUES ('4f9c5c3c-b5a6-5e1c-a491-27c145e00d1b', '2b964ea7-08c8-50ed-ba98-82f2456690ae', 'screenshot_before', 'blob:sha256:4b046a7cdbf3a81e412799b2ec7e33ef74740f5212183cce7b54b64ffd48e929', NULL, NULL, '2025-01-22 03:30:59.608814+00');
INSERT INTO cua.obs VALUES ('1fd6b45d-7cb2-578c-a0e2-92dcb125d142', '2b964ea7-08c8-50ed-ba98-82f2456690ae', 'model_response', NULL, 'click(50,77)', NULL, '2025-01-22 03:30:59.608814+00');
INSERT INTO cua.obs VALUES ('d8fd60e1-4ae9-527a-b31a-defc7cfd6644', '2b964ea7-08c8-50ed-ba98-82f2456690ae', 'screenshot_after', 'blob:sha256:87569d9f0d894181f41e88c5daa8c6c76897a4b35513b422ed28048e8cf02bab', NULL, NULL, '2025-01-22 03:30:59.608814+00');
INSERT INTO cua.obs VALUES ('32100c15-56a1-54e8-ba72-98fc5a3e08be', 'd634cb6e-62af-5505-bfb1-5598fc451fe9', 'screenshot_before', 'blob:sha256:87569d9f0d894181f41e88c5daa8c6c76897a4b35513b422ed28048e8cf02bab', NULL, NULL, '2025-01-22 03:30:59.609317+00');
INSERT INTO cua.obs VALUES ('c5c3059a-fbbf-5ba2-a84b-4a797aa42ad0', 'd634cb6e-62af-5505-bfb1-5598fc451fe9', 'model_response', NULL, 'terminate(success)', NULL, '2025-01-22 03:30:59.609317+00');
INSERT INTO cua.obs VALUES ('1657b676-5daf-5aec-ba8b-66f5fc07858c', 'd634cb6e-62af-5505-bfb1-5598fc451fe9', 'screenshot_after', 'blob:sha256:87569d9f0d894181f41e88c5daa8c6c76897a4b35513b422ed28048e8cf02bab', NULL, NULL, '2025-01-22 03:30:59.609317+00');
INSERT INTO cua.obs VALUES ('0336f176-9d48-5caa-a245-93f9499193ed', '43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', 'screenshot_before', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.obs VALUES ('2f4a117f-a091-5ccc-af77-392c602f5032', '43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', 'text', NULL, 'Open the Settings app.', NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.obs VALUES ('98de1af3-54fd-5d6f-a670-007f6cff3c2b', '43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.obs VALUES ('95f4402d-0c79-5236-bb7a-dd93a0e32700', '43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', 'screenshot_after', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.obs VALUES ('136e19db-9437-5ca3-b56a-c79aaa7c9496', '965370b0-55be-580c-b836-0809c0067017', 'screenshot_before', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.62825+00');
INSERT INTO cua.obs VALUES ('c56914fd-1e57-540f-9deb-bd6dcdda4630', '965370b0-55be-580c-b836-0809c0067017', 'model_response', NULL, 'click(58,83)', NULL, '2025-01-22 03:30:59.62825+00');
INSERT INTO cua.obs VALUES ('e15742ec-8e23-5862-a351-0eccebe5b7ed', '965370b0-55be-580c-b836-0809c0067017', 'screenshot_after', 'blob:sha256:4fc0376fb1dd601750db79e49bad4ea508c7e514467474d1846ac5ac77366e31', NULL, NULL, '2025-01-22 03:30:59.62825+00');
INSERT INTO cua.obs VALUES ('992ff26e-12b5-5c5c-a303-d6f6692c58b0', '5fb7fcae-7c12-50e3-b868-e248fe6ebedc', 'screenshot_before', 'blob:sha256:4fc0376fb1dd601750db79e49bad4ea508c7e514467474d1846ac5ac77366e31', NULL, NULL, '2025-01-22 03:30:59.628905+00');
INSERT INTO cua.obs VALUES ('50b16690-0de7-57a4-945d-8063f55bee89', '5fb7fcae-7c12-50e3-b868-e248fe6ebedc', 'model_response', NULL, 'click(48,74)', NULL, '2025-01-22 03:30:59.628905+00');
INSERT INTO cua.obs VALUES ('1456b0ba-5fbc-524e-8043-42de90bae8b5', '5fb7fcae-7c12-50e3-b868-e248fe6ebedc', 'screenshot_after', 'blob:sha256:4fc0376fb1dd601750db79e49bad4ea508c7e514467474d1846ac5ac77366e31', NULL, NULL, '2025-01-22 03:30:59.628905+00');
INSERT INTO cua.obs VALUES ('7d1a02a0-270b-5c7e-a8a6-60972e754d1b', 'b2d2da9a-4dcc-5727-9a6b-3562a0867f3d', 'screenshot_before', 'blob:sha256:4fc0376fb1dd601750db79e49bad4ea508c7e514467474d1846ac5ac77366e31', NULL, NULL, '2025-01-22 03:30:59.629389+00');
INSERT INTO cua.obs VALUES ('73142364-c6ff-5dde-8f52-ceb1298ef079', 'b2d2da9a-4dcc-5727-9a6b-3562a0867f3d', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.629389+00');
INSERT INTO cua.obs VALUES ('9c25d3f9-8174-549e-92e1-c5e16b26d241', 'b2d2da9a-4dcc-5727-9a6b-3562a0867f3d', 'screenshot_after', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.629389+00');
INSERT INTO cua.obs VALUES ('cf6bccac-7b86-59bc-9bf7-60fa4544b0bd', 'df30ed11-1eb7-51a1-b3df-64bd900a78ed', 'screenshot_before', 'blob:sha256:0c7ba7b80af9497abf4718dd50790df3e910cc89381c7b4e338cc94e323aabb2', NULL, NULL, '2025-01-22 03:30:59.629953+00');
INSERT INTO cua.obs VALUES ('6fb73f54-b49d-5c16-bb74-5d22ea15077c', 'df30ed11-1eb7-51a1-b3df-64bd900a78ed', 'model_response', NULL, 'click(37,85)', NULL, '2025-01-22 03:30:59.629953+00');
INSERT INTO cua.obs VALUES ('657d5caf-9b96-5956-8afd-836b3ee23e46', 'df30ed11-1eb7-51a1-b3df-64bd900a78ed', 'screenshot_after', 'blob:sha256:4b046a7cdbf3a81e412799b2ec7e33ef74740f5212183cce7b54b64ffd48e929', NULL, NULL, '2025-01-22 03:30:59.629953+00');
INSERT INTO cua.obs VALUES ('12272015-b064-55fb-af49-722586202021', '57c34461-d4da-58a8-95f6-a05785208eb4', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.obs VALUES ('922514c4-56a7-5b69-93b9-a07ee3463b92', '57c34461-d4da-58a8-95f6-a05785208eb4', 'text', NULL, 'Turn Wi-Fi on in Settings.', NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.obs VALUES ('152f2ca7-9d30-54bc-982f-4cce4128b012', '57c34461-d4da-58a8-95f6-a05785208eb4', 'model_response', NULL, 'swipe(right)', NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.obs VALUES ('6a16e50b-021c-57b0-8a81-91e69acf5472', '57c34461-d4da-58a8-95f6-a05785208eb4', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.obs VALUES ('c03d3c04-c1c3-5a79-9479-392573660394', 'cbe747df-296a-5a9e-917b-064e1a19851e', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.688262+00');
INSERT INTO cua.obs VALUES ('d67bb8b5-035a-5604-815f-fde8263d9d7d', 'cbe747df-296a-5a9e-917b-064e1a19851e', 'model_response', NULL, 'click(87,85)', NULL, '2025-01-22 03:30:59.688262+00');
INSERT INTO cua.obs VALUES ('64ec7dca-f1fb-5ca2-ab3a-15d19b0731c6', 'cbe747df-296a-5a9e-917b-064e1a19851e', 'screenshot_after', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.688262+00');
INSERT INTO cua.obs VALUES ('e6248a0f-f7b9-548c-a7fa-2d4b225da645', '5a1698e7-fadc-5e67-9deb-67b0fd082803', 'screenshot_before', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.688955+00');
INSERT INTO cua.obs VALUES ('a0be0054-7048-5238-b814-ca6b9154dc7a', '5a1698e7-fadc-5e67-9deb-67b0fd082803', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.688955+00');
INSERT INTO cua.obs VALUES ('435e8448-b04f-572c-9c65-76ee7531b963', '5a1698e7-fadc-5e67-9deb-67b0fd082803', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.688955+00');
INSERT INTO cua.obs VALUES ('eb16f9fb-c811-5298-8c87-ad2baccc1e8d', '74d88570-cba9-58b8-8371-6a47cc4e84b8', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.705244+00');
INSERT INTO cua.obs VALUES ('defa625e-c32a-539c-aa44-7ca37c927434', '74d88570-cba9-58b8-8371-6a47cc4e84b8', 'model_response', NULL, 'click(93,51)', NULL, '2025-01-22 03:30:59.705244+00');
INSERT INTO cua.obs VALUES ('2b8124a0-ddf6-5917-bb47-370e24714973', '74d88570-cba9-58b8-8371-6a47cc4e84b8', 'screenshot_after', 'blob:sha256:9eaf7c658f1c6bbcdb87734b3aece027c6475d7c8aab228ba54c06d158b20535', NULL, NULL, '2025-01-22 03:30:59.705244+00');
INSERT INTO cua.obs VALUES ('a5634586-0f5b-582f-86a0-16c533573848', '2f9438b0-afc9-5594-8640-c01fc4e0ef3b', 'screenshot_before', 'blob:sha256:9eaf7c658f1c6bbcdb87734b3aece027c6475d7c8aab228ba54c06d158b20535', NULL, NULL, '2025-01-22 03:30:59.705955+00');
INSERT INTO cua.obs VALUES ('30323227-d4ba-5db4-b894-6e398982555b', '2f9438b0-afc9-5594-8640-c01fc4e0ef3b', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.705955+00');
INSERT INTO cua.obs VALUES ('b90fa349-28ad-5d15-a025-9d2d4a6f92fc', '2f9438b0-afc9-5594-8640-c01fc4e0ef3b', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.705955+00');
INSERT INTO cua.obs VALUES ('37f9ebe8-5cf9-5284-b66a-69df8d42240a', '02ed438e-332b-508a-b31d-aa4ffcce381f', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.720818+00');
INSERT INTO cua.obs VALUES ('a42c1756-57d6-575c-a879-b09f1a636876', '02ed438e-332b-508a-b31d-aa4ffcce381f', 'model_response', NULL, 'click(36,64)', NULL, '2025-01-22 03:30:59.720818+00');
INSERT INTO cua.obs VALUES ('09206c3f-4126-5192-9871-6211d9112ce2', '02ed438e-332b-508a-b31d-aa4ffcce381f', 'screenshot_after', 'blob:sha256:4f203b1dab9d08041f1f233203c0a8ef58d2b193cea128cd49282f2f31fc85cf', NULL, NULL, '2025-01-22 03:30:59.720818+00');
INSERT INTO cua.obs VALUES ('808fe67a-caeb-5507-9e99-36b709cbb344', '745f257f-9de9-5f36-852c-43824e63d6ad', 'screenshot_before', 'blob:sha256:4f203b1dab9d08041f1f233203c0a8ef58d2b193cea128cd49282f2f31fc85cf', NULL, NULL, '2025-01-22 03:30:59.724183+00');
INSERT INTO cua.obs VALUES ('e7e07aed-e134-516a-b9cb-d5f4b6b79207', '745f257f-9de9-5f36-852c-43824e63d6ad', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.724183+00');
INSERT INTO cua.obs VALUES ('44c9edce-8c7a-55d7-a32a-1fde26dd3b21', '745f257f-9de9-5f36-852c-43824e63d6ad', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.724183+00');
INSERT INTO cua.obs VALUES ('92366644-2c5c-59ae-a2a0-8c346a0d51e3', 'e292e8b4-f103-5831-88b9-73f1609fafa4', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.735709+00');
INSERT INTO cua.obs VALUES ('30cb0c48-21ac-5a84-9d15-2b2102bfce8a', 'e292e8b4-f103-5831-88b9-73f1609fafa4', 'model_response', NULL, 'click(48,84)', NULL, '2025-01-22 03:30:59.735709+00');
INSERT INTO cua.obs VALUES ('6dd1dc02-63f2-5895-b1f7-3b3a0e697388', 'e292e8b4-f103-5831-88b9-73f1609fafa4', 'screenshot_after', 'blob:sha256:1538d529fb4a211ee9132785c347b7796208fd3a9f53863d1926c51a2886df9b', NULL, NULL, '2025-01-22 03:30:59.735709+00');
INSERT INTO cua.obs VALUES ('d0e1e008-2afd-5bb2-a81e-de2e29d84126', '3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.obs VALUES ('e5caacab-896e-50a4-965a-a7d021af5522', '3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 'text', NULL, 'Turn Wi-Fi on in Settings.', NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.obs VALUES ('3529b9a9-1fd5-5579-b37c-6e246c8dee5e', '3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 'model_response', NULL, 'click(5,10)', NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.obs VALUES ('3ea76560-3042-5774-9040-5a3d941cdb95', '3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.obs VALUES ('28e17c9b-4567-5060-bda1-27b5604f53d8', '7fa2d177-bcb4-55d5-a40b-438a257c8f94', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.758519+00');
INSERT INTO cua.obs VALUES ('94ba9b67-3d48-55a7-ad79-6d904616d6f0', '7fa2d177-bcb4-55d5-a40b-438a257c8f94', 'model_response', NULL, 'click(87,85)', NULL, '2025-01-22 03:30:59.758519+00');
INSERT INTO cua.obs VALUES ('dac3c7f3-2397-5c6a-ac75-9e1575dae886', '7fa2d177-bcb4-55d5-a40b-438a257c8f94', 'screenshot_after', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.758519+00');
INSERT INTO cua.obs VALUES ('b8406d7a-f968-5baf-8919-22a31d31e033', '87d6b461-ceda-52c3-82f9-b8bf430c770b', 'screenshot_before', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.759359+00');
INSERT INTO cua.obs VALUES ('43103b20-af9d-5aab-86da-5939a96d3d96', '87d6b461-ceda-52c3-82f9-b8bf430c770b', 'model_response', NULL, 'wait()', NULL, '2025-01-22 03:30:59.759359+00');
INSERT INTO cua.obs VALUES ('38acc809-f455-553d-959d-77b0edd1b42a', '87d6b461-ceda-52c3-82f9-b8bf430c770b', 'screenshot_after', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.759359+00');
INSERT INTO cua.obs VALUES ('11d1e9ac-8e45-5660-8281-14fc536c99cc', '08e93e1d-0dec-5d83-8e12-2ac535335324', 'screenshot_before', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.764314+00');
INSERT INTO cua.obs VALUES ('af1f0710-d602-58c8-875a-bdbcefeaec8b', '08e93e1d-0dec-5d83-8e12-2ac535335324', 'model_response', NULL, 'swipe(left)', NULL, '2025-01-22 03:30:59.764314+00');
INSERT INTO cua.obs VALUES ('89ed1695-46d7-5abd-a87c-1d282178e67e', '08e93e1d-0dec-5d83-8e12-2ac535335324', 'screenshot_after', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.764314+00');
INSERT INTO cua.obs VALUES ('891c5a05-0c19-52d2-83bc-cd817a363522', '09899171-63fc-5b8c-9082-ee145f83c226', 'screenshot_before', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.76702+00');
INSERT INTO cua.obs VALUES ('9e3b4076-a943-53e6-81e1-66ab2c033c48', '09899171-63fc-5b8c-9082-ee145f83c226', 'model_response', NULL, 'click(31,93)', NULL, '2025-01-22 03:30:59.76702+00');
INSERT INTO cua.obs VALUES ('19be111e-137d-593c-841a-7402fe5712e1', '09899171-63fc-5b8c-9082-ee145f83c226', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.76702+00');
INSERT INTO cua.obs VALUES ('a444c0d2-3f05-50d3-a015-7da47a4925ad', '611ce53d-ba50-5033-9396-bf0b9a94ea46', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.772565+00');
INSERT INTO cua.obs VALUES ('83882068-555f-5b88-b76a-23dca7b3f596', '611ce53d-ba50-5033-9396-bf0b9a94ea46', 'model_response', NULL, 'click(16,96)', NULL, '2025-01-22 03:30:59.772565+00');
INSERT INTO cua.obs VALUES ('6c5b14e3-1820-5384-9bec-f320e8365a63', '611ce53d-ba50-5033-9396-bf0b9a94ea46', 'screenshot_after', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.772565+00');
INSERT INTO cua.obs VALUES ('67e2c725-0cf8-5920-8bd2-7bb023a39df2', 'a0af39df-4030-5e48-b63a-8c3cdc586454', 'screenshot_before', 'blob:sha256:62a38f38a47845e6c13a08bd16333162144723403555f1c5a700c40834fc99c8', NULL, NULL, '2025-01-22 03:30:59.773318+00');
INSERT INTO cua.obs VALUES ('803cc21a-f980-5880-a124-e436b4019970', 'a0af39df-4030-5e48-b63a-8c3cdc586454', 'model_response', NULL, 'click(87,85)', NULL, '2025-01-22 03:30:59.773318+00');
INSERT INTO cua.obs VALUES ('a57cf33b-ab49-588e-9abf-d388a7027e03', 'a0af39df-4030-5e48-b63a-8c3cdc586454', 'screenshot_after', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.773318+00');
INSERT INTO cua.obs VALUES ('98aea1fc-3703-5b51-a8d1-749ae55ee78c', '3b737a54-be83-5d22-b620-04ac02bff22e', 'screenshot_before', 'blob:sha256:ef31bcb1992991b9f57b66b0af0d7486e46522d80a4f91ecc8173d8481e108f7', NULL, NULL, '2025-01-22 03:30:59.808307+00');
INSERT INTO cua.obs VALUES ('3de550d3-6089-564c-aae8-a787c92072ee', '3b737a54-be83-5d22-b620-04ac02bff22e', 'model_response', NULL, 'click(50,77)', NULL, '2025-01-22 03:30:59.808307+00');
INSERT INTO cua.obs VALUES ('9a4af1e8-e083-572b-bd66-1148c928d180', '3b737a54-be83-5d22-b620-04ac02bff22e', 'screenshot_after', 'blob:sha256:9d4816b8bb468e4ce13234817dc35b17df1277903efc20a881600f8f2ff35bd0', NULL, NULL, '2025-01-22 03:30:59.808307+00');
INSERT INTO cua.obs VALUES ('cb4c66dc-4079-5a23-9a1d-b90ee08e97ef', '44fcdde7-5761-5be4-ae55-c61e11ee4516', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.obs VALUES ('4472c6e9-6c43-5e8d-bea9-d3bfb6b695ae', '44fcdde7-5761-5be4-ae55-c61e11ee4516', 'text', NULL, 'Turn Wi-Fi on in Settings.', NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.obs VALUES ('5cd6a318-602a-516e-b556-eb64f0d7ee3f', '44fcdde7-5761-5be4-ae55-c61e11ee4516', 'model_response', NULL, 'click(62,67)', NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.obs VALUES ('63827301-ba7e-5ff0-820e-5c7afebbbd46', '44fcdde7-5761-5be4-ae55-c61e11ee4516', 'screenshot_after', 'blob:sha256:cdd99d8920b472dc981d69b4b0a93255f38622cc27354a4869002ee7e1fb8683', NULL, NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.obs VALUES ('23d6e0ae-7e91-57cd-a480-f102d57840c8', '4176c380-9fc2-5615-8242-bd57557af166', 'screenshot_before', 'blob:sha256:cdd99d8920b472dc981d69b4b0a93255f38622cc27354a4869002ee7e1fb8683', NULL, NULL, '2025-01-22 03:30:59.889552+00');
INSERT INTO cua.obs VALUES ('69dd3f9d-343f-50ce-a797-3b09f84a5df3', '4176c380-9fc2-5615-8242-bd57557af166', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.889552+00');
INSERT INTO cua.obs VALUES ('5a0f9574-7c70-5d3b-9e0d-7f74a5de6f5e', '4176c380-9fc2-5615-8242-bd57557af166', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.889552+00');
INSERT INTO cua.obs VALUES ('5e26da47-b903-5b5b-bcaa-3da39e3f7189', '1018bfed-b9d7-5d23-b01f-a754157058bc', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.889955+00');
INSERT INTO cua.obs VALUES ('fa7b3853-c36a-5281-9677-c02fa52bcb6e', '1018bfed-b9d7-5d23-b01f-a754157058bc', 'model_response', NULL, 'button(back)', NULL, '2025-01-22 03:30:59.889955+00');
INSERT INTO cua.obs VALUES ('b4098e35-3483-5325-8219-507eb480dcf3', '1018bfed-b9d7-5d23-b01f-a754157058bc', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.889955+00');
INSERT INTO cua.obs VALUES ('33eecfaf-3b1b-5612-a4b4-8df11441697e', '3fea3ea9-a4db-5da0-b89b-6c3c13a254d9', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.901498+00');
INSERT INTO cua.obs VALUES ('827b0116-c0a4-5e8b-93eb-f484baa85884', '3fea3ea9-a4db-5da0-b89b-6c3c13a254d9', 'model_response', NULL, 'click(37,85)', NULL, '2025-01-22 03:30:59.901498+00');
INSERT INTO cua.obs VALUES ('3c0221ed-7716-54e5-9627-85c553aaee43', '3fea3ea9-a4db-5da0-b89b-6c3c13a254d9', 'screenshot_after', 'blob:sha256:6f861769b265ba7193f31072fa92d6d5e4317b4b18e86e0160e7311512fb7037', NULL, NULL, '2025-01-22 03:30:59.901498+00');
INSERT INTO cua.obs VALUES ('be710b4f-8346-51d1-90ae-21b87f85ac39', 'b95158f8-29a3-552a-bcbb-5a907d16e1e4', 'screenshot_before', 'blob:sha256:6f861769b265ba7193f31072fa92d6d5e4317b4b18e86e0160e7311512fb7037', NULL, NULL, '2025-01-22 03:30:59.902422+00');
INSERT INTO cua.obs VALUES ('083a4eb0-81da-5da0-afbc-eaa567e435f7', 'b95158f8-29a3-552a-bcbb-5a907d16e1e4', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.902422+00');
INSERT INTO cua.obs VALUES ('68ac2b7f-d9b3-5724-9913-800e389267ce', 'b95158f8-29a3-552a-bcbb-5a907d16e1e4', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.902422+00');
INSERT INTO cua.obs VALUES ('9c800497-e9be-548e-b7e1-664667fb59a4', 'a8581d56-26c0-5e27-a138-0ab67fe23467', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.912792+00');
INSERT INTO cua.obs VALUES ('476c32a5-3735-5543-aeb6-d73a1a11cd12', 'a8581d56-26c0-5e27-a138-0ab67fe23467', 'model_response', NULL, 'click(55,85)', NULL, '2025-01-22 03:30:59.912792+00');
INSERT INTO cua.obs VALUES ('61193598-c3f8-5ef4-82b7-f1c3c5eda4e0', 'a8581d56-26c0-5e27-a138-0ab67fe23467', 'screenshot_after', 'blob:sha256:bd245b2f9685732e4a50c4cd456bff2b2e51e88905e1b01eb70e17178160ae8b', NULL, NULL, '2025-01-22 03:30:59.912792+00');
INSERT INTO cua.obs VALUES ('0f7fd759-69ab-5ea7-8a84-b3e8d5fb5ca1', 'c3572634-dc7f-5bee-9d5a-57cd14f944ea', 'screenshot_before', 'blob:sha256:bd245b2f9685732e4a50c4cd456bff2b2e51e88905e1b01eb70e17178160ae8b', NULL, NULL, '2025-01-22 03:30:59.915994+00');
INSERT INTO cua.obs VALUES ('e0d18813-8200-5fdc-82e3-955a47760d0c', 'c3572634-dc7f-5bee-9d5a-57cd14f944ea', 'model_response', NULL, 'click(11,46)', NULL, '2025-01-22 03:30:59.915994+00');
INSERT INTO cua.obs VALUES ('c4ffa9fc-941a-5281-8e5e-0d545b7eaa9e', 'c3572634-dc7f-5bee-9d5a-57cd14f944ea', 'screenshot_after', 'blob:sha256:73ebc7e7e189892348c25260d89a94f76f47ee57b5ae5a0f3939b3b530d2e0bc', NULL, NULL, '2025-01-22 03:30:59.915994+00');
INSERT INTO cua.obs VALUES ('539d33bc-8253-5228-a797-3ff196bfd8ef', 'd9c03364-0ef4-541c-b4ec-b36af16b2cde', 'screenshot_before', 'blob:sha256:73ebc7e7e189892348c25260d89a94f76f47ee57b5ae5a0f3939b3b530d2e0bc', NULL, NULL, '2025-01-22 03:30:59.916574+00');
INSERT INTO cua.obs VALUES ('526f9f81-eb8d-5fc1-8e40-5f6cd48755c2', 'd9c03364-0ef4-541c-b4ec-b36af16b2cde', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.916574+00');
INSERT INTO cua.obs VALUES ('1e5adfab-3694-5e7e-8035-68b4ce5b7423', 'd9c03364-0ef4-541c-b4ec-b36af16b2cde', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.916574+00');
INSERT INTO cua.obs VALUES ('fd87f656-6a81-55d4-a30f-03035da7a7f1', '955c8ad7-aa43-5ad7-8fa4-37b937d2f596', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.obs VALUES ('02cea35e-a30f-5480-8f2d-541fd42c3e36', '955c8ad7-aa43-5ad7-8fa4-37b937d2f596', 'text', NULL, 'Turn Wi-Fi on in Settings.', NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.obs VALUES ('342f4d02-47a6-5097-b88d-02b6ee1f4b42', '955c8ad7-aa43-5ad7-8fa4-37b937d2f596', 'model_response', NULL, 'click(37,38)', NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.obs VALUES ('3d8da833-56fc-5b49-bc11-f17a77a63c51', '955c8ad7-aa43-5ad7-8fa4-37b937d2f596', 'screenshot_after', 'blob:sha256:bd0b5650bd3bbaf4285a6b71e3a8132538b73d36a509b55a4ee0e920e9948db4', NULL, NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.obs VALUES ('1d0d28f5-7437-52c0-a8de-0527f8a887ac', '12bd0664-f1e3-53da-82eb-b7d9121ee380', 'screenshot_before', 'blob:sha256:bd0b5650bd3bbaf4285a6b71e3a8132538b73d36a509b55a4ee0e920e9948db4', NULL, NULL, '2025-01-22 03:30:59.92312+00');
INSERT INTO cua.obs VALUES ('2424b8f6-e993-5828-bae8-dbb5380b7ef2', '12bd0664-f1e3-53da-82eb-b7d9121ee380', 'model_response', NULL, 'button(home)', NULL, '2025-01-22 03:30:59.92312+00');
INSERT INTO cua.obs VALUES ('faf6a315-1d67-5ee0-9fb8-a50dfd81403a', '12bd0664-f1e3-53da-82eb-b7d9121ee380', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.92312+00');
INSERT INTO cua.obs VALUES ('8b3e7a68-7907-59c7-9730-13ae3f4dd8b2', '2ab49495-1c18-5fda-aedb-2fc696534d83', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.930047+00');
INSERT INTO cua.obs VALUES ('a9903751-91eb-5f03-9d4f-1ed871b72f9f', '2ab49495-1c18-5fda-aedb-2fc696534d83', 'model_response', NULL, 'click(87,38)', NULL, '2025-01-22 03:30:59.930047+00');
INSERT INTO cua.obs VALUES ('4459ca63-b9b5-5832-851d-e0bf7a6170f0', '2ab49495-1c18-5fda-aedb-2fc696534d83', 'screenshot_after', 'blob:sha256:601342c18b2aac01730d49a935e2944d7b239d5af26597a70dd2f2f54f159cea', NULL, NULL, '2025-01-22 03:30:59.930047+00');
INSERT INTO cua.obs VALUES ('222582f7-043d-5f23-971c-db556b62731e', 'f5073023-aa47-51ce-b594-888b9e08213e', 'screenshot_before', 'blob:sha256:601342c18b2aac01730d49a935e2944d7b239d5af26597a70dd2f2f54f159cea', NULL, NULL, '2025-01-22 03:30:59.930501+00');
INSERT INTO cua.obs VALUES ('a242766f-ce87-5fa4-87e7-7ca48706334a', 'f5073023-aa47-51ce-b594-888b9e08213e', 'model_response', NULL, 'click(50,96)', NULL, '2025-01-22 03:30:59.930501+00');
INSERT INTO cua.obs VALUES ('d9a3ed49-8901-54fb-bbc5-1df0b910a966', 'f5073023-aa47-51ce-b594-888b9e08213e', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.930501+00');
INSERT INTO cua.obs VALUES ('d333778f-56de-5fa8-ad60-c4f763c67354', '837b7623-41b2-50bb-b299-8413d5f453c5', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.964332+00');
INSERT INTO cua.obs VALUES ('c460c735-ebd9-516c-8211-011151283200', '837b7623-41b2-50bb-b299-8413d5f453c5', 'model_response', NULL, 'click(62,23)', NULL, '2025-01-22 03:30:59.964332+00');
INSERT INTO cua.obs VALUES ('f1b629f2-0c9d-591d-b171-044dd1496ec6', '837b7623-41b2-50bb-b299-8413d5f453c5', 'screenshot_after', 'blob:sha256:fd1f3baf79b5dd787877aae0194437df83fe9131604af5b09bd55938f82005d8', NULL, NULL, '2025-01-22 03:30:59.964332+00');
INSERT INTO cua.obs VALUES ('2fe96522-7925-58b0-9bd1-ee20e3779a7e', '8d4886f3-9f02-5f60-95a3-51412b58a279', 'screenshot_before', 'blob:sha256:fd1f3baf79b5dd787877aae0194437df83fe9131604af5b09bd55938f82005d8', NULL, NULL, '2025-01-22 03:30:59.965629+00');
INSERT INTO cua.obs VALUES ('3ebc6481-cd8e-5fe3-a825-6e8be9caf583', '8d4886f3-9f02-5f60-95a3-51412b58a279', 'model_response', NULL, 'click(50,96)', NULL, '2025-01-22 03:30:59.965629+00');
INSERT INTO cua.obs VALUES ('ee33a4a3-57ca-54dc-9d3b-77007077365c', '8d4886f3-9f02-5f60-95a3-51412b58a279', 'screenshot_after', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.965629+00');
INSERT INTO cua.obs VALUES ('cba70763-cdf1-5f90-995b-c8200a8f9df4', 'f5af0402-8c3f-57e0-b73a-ff378fe38b93', 'screenshot_before', 'blob:sha256:7fed7d7732432d002a69a64f5d3665a2ff45954f06416da7aee2d462df8bdfda', NULL, NULL, '2025-01-22 03:30:59.972839+00');
INSERT INTO cua.obs VALUES ('634d0c31-5e45-5234-8313-9c433adc7d6c', 'f5af0402-8c3f-57e0-b73a-ff378fe38b93', 'model_response', NULL, 'swipe(up)', NULL, '2025-01-22 03:30:59.972839+00');
INSERT INTO cua.obs VALUES ('10a64089-6897-51cf-9a37-04913ec3e12b', 'f5af0402-8c3f-57e0-b73a-ff378fe38b93', 'screenshot_after', 'blob:sha256:9e7ac7d9394601296bdf492ccb5bbfa7c18a552520a988bc24591ed85ece2248', NULL, NULL, '2025-01-22 03:30:59.972839+00');
INSERT INTO cua.obs VALUES ('8fa89693-8868-51fa-9ce7-9a80a6c28424', 'c95766d4-ccb4-5b08-a1b9-4336925ed8e2', 'screenshot_before', 'blob:sha256:9e7ac7d9394601296bdf492ccb5bbfa7c18a552520a988bc24591ed85ece2248', NULL, NULL, '2025-01-22 03:30:59.973581+00');
INSERT INTO cua.obs VALUES ('95e8a0de-77fe-5c18-b0b5-f53dc18b1d48', 'c95766d4-ccb4-5b08-a1b9-4336925ed8e2', 'model_response', NULL, 'swipe(left)', NULL, '2025-01-22 03:30:59.973581+00');
INSERT INTO cua.obs VALUES ('a73f951b-9013-5c5a-a976-090e326e5d78', 'c95766d4-ccb4-5b08-a1b9-4336925ed8e2', 'screenshot_after', 'blob:sha256:9e7ac7d9394601296bdf492ccb5bbfa7c18a552520a988bc24591ed85ece2248', NULL, NULL, '2025-01-22 03:30:59.973581+00');


--
-- Data for Name: projection; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.projection VALUES (1, '1d6a41ab-87eb-4c47-8d95-0b3602a46618', 2, 'dd9d39c731c18a5740d11b96c5e4b1a7a3d9dec25fea19352788cfda4d9c7be9', 'local-f9d1c986-701e-4ab8-ba73-a3041ed10c9b');


--
-- Data for Name: reader_position; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.reader_position VALUES ('cua.rollouts', 0, 20, '2025-01-22 03:31:01.25131+00', 20, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 1, 6, '2025-01-22 03:31:01.323151+00', 6, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 2, 2, '2025-01-22 03:31:00.07224+00', 2, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 3, 4, '2025-01-22 03:31:01.323151+00', 4, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 4, 4, '2025-01-22 03:31:00.07224+00', 4, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 5, 29, '2025-01-22 03:31:01.25131+00', 29, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 6, 4, '2025-01-22 03:31:01.228762+00', 4, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 7, 19, '2025-01-22 03:30:59.753948+00', 19, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 8, 6, '2025-01-22 03:31:01.323151+00', 6, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 9, 55, '2025-01-22 03:31:01.323151+00', 55, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 10, 4, '2025-01-22 03:30:59.624169+00', 4, 0);
INSERT INTO cua.reader_position VALUES ('cua.rollouts', 11, 15, '2025-01-22 03:30:59.576221+00', 15, 0);
INSERT INTO cua.reader_position VALUES ('cua.training', 5, 43, '2025-01-22 03:31:00.07224+00', 43, 0);
INSERT INTO cua.reader_position VALUES ('cua.training', 7, 10, '2025-01-22 03:31:01.323151+00', 10, 0);
INSERT INTO cua.reader_position VALUES ('cua.training', 10, 10, '2025-01-22 03:30:59.576221+00', 10, 0);


--
-- Data for Name: rollout; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.rollout VALUES ('6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'baseline', NULL, NULL, 'afa00e31-a763-580b-a09d-e885ca529f55', '91e41f64-ce71-5190-a8cd-fa6f2b4e35a9', '20cf18d7-f67b-5927-903b-09f31ac3e2fc', 'killed/g0/baseline/group-0/env-0/attempt-0', 0, 0, 0, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, true, 475319113826176507, 3, 0.11264379100066435, 1.7929996829479933e-06, '2025-01-22 03:30:59.44473+00', '2025-01-22 03:30:59.492124+00', 0.006360889000461611, 0.15998250900065614, true, true, true, true, 3, 5, 1, 0, 0, 3, 0, 0, 0, 0, 0, false, true, NULL, 3, NULL, '[]', '{"seed": 475319113826176507, "task_id": "train_01_open_settings"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.332374+00', '2025-01-22 03:30:59.492294+00', '2025-01-22 03:30:59.332339+00', '2025-01-22 03:30:59.492294+00');
INSERT INTO cua.rollout VALUES ('a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'baseline', NULL, NULL, 'afa00e31-a763-580b-a09d-e885ca529f55', '9152c67d-72ad-58bd-9758-f064b92b432a', '7c9474f7-fe16-5390-b246-878267b03efd', 'killed/g0/baseline/group-1/env-0/attempt-0', 0, 1, 0, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 0, true, 3323162735078075917, 8, 0.0238055190002342, 1.4319994079414755e-06, '2025-01-22 03:30:59.516603+00', '2025-01-22 03:30:59.570262+00', 0.0005452679997688392, 0.07751509599984274, false, false, NULL, false, 8, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 3323162735078075917, "task_id": "train_02_enable_wifi"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.49304+00', '2025-01-22 03:30:59.570536+00', '2025-01-22 03:30:59.493014+00', '2025-01-22 03:30:59.570536+00');
INSERT INTO cua.rollout VALUES ('e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, '90929f4f-ad17-582d-966c-16be5e3b986a', '6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 'killed/g0/step-1/group-0/env-0/attempt-0', 0, 0, 0, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, false, 4302844914413162269, 4, 0.015443944000253396, 1.8030004866886884e-06, '2025-01-22 03:30:59.59284+00', '2025-01-22 03:30:59.609538+00', 0.00015278699993359623, 0.032091361000311736, true, true, true, true, 4, 5, 1, 1, 0, 4, 0, 0, 0, 0, 0, false, true, NULL, 4, NULL, '[]', '{"seed": 4302844914413162269, "task_id": "train_01_open_settings"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.577627+00', '2025-01-22 03:30:59.609691+00', '2025-01-22 03:30:59.5776+00', '2025-01-22 03:30:59.609691+00');
INSERT INTO cua.rollout VALUES ('9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, '90929f4f-ad17-582d-966c-16be5e3b986a', '1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 'killed/g0/step-1/group-0/env-1/attempt-0', 0, 0, 1, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, false, 4302844914413162269, 5, 0.0016020850007407716, 8.010001693037339e-07, '2025-01-22 03:30:59.611936+00', '2025-01-22 03:30:59.632101+00', 0.002098711000144249, 0.021702371000174026, false, true, NULL, true, 5, 5, 1, 1, 0, 5, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 4302844914413162269, "task_id": "train_01_open_settings"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.610874+00', '2025-01-22 03:30:59.632264+00', '2025-01-22 03:30:59.610671+00', '2025-01-22 03:30:59.632264+00');
INSERT INTO cua.rollout VALUES ('53b9bec9-6400-5533-9b41-982935794d5a', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, 'ca16c0f7-07c8-5a5f-8b29-527954634705', '8bac2ab6-2359-55c2-97c4-d430150dd343', 'killed/g0/step-1/group-1/env-0/attempt-0', 0, 1, 0, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 0, false, 6880101871322594088, 8, 0.0358318260005035, 1.6820004020701163e-06, '2025-01-22 03:30:59.676076+00', '2025-01-22 03:30:59.736178+00', 0.0003395429994270671, 0.09591927800011035, false, false, NULL, false, 8, 8, 0, 1, 0, 8, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 6880101871322594088, "task_id": "train_02_enable_wifi"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.640488+00', '2025-01-22 03:30:59.736357+00', '2025-01-22 03:30:59.640453+00', '2025-01-22 03:30:59.736357+00');
INSERT INTO cua.rollout VALUES ('b9f769d0-5386-5b75-8ada-91e523774a26', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, NULL, 'ca16c0f7-07c8-5a5f-8b29-527954634705', '1d401587-32aa-545b-a913-898967844396', 'killed/g0/step-1/group-1/env-1/attempt-0', 0, 1, 1, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 0, false, 6880101871322594088, 8, 0.0010887039998124237, 1.321999661740847e-06, '2025-01-22 03:30:59.757135+00', '2025-01-22 03:30:59.808549+00', 0.00010936199942079838, 0.05254517199955444, false, false, NULL, false, 8, 8, 0, 1, 0, 8, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 6880101871322594088, "task_id": "train_02_enable_wifi"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.7563+00', '2025-01-22 03:30:59.80878+00', '2025-01-22 03:30:59.756202+00', '2025-01-22 03:30:59.80878+00');
INSERT INTO cua.rollout VALUES ('79d60687-f5e7-5984-bc4b-bbeed4908886', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, NULL, 'ee60e453-9215-5141-b33c-e40dd24113a2', '01951109-a548-5e74-b708-6ea73797a004', 'killed/g0/step-2/group-0/env-0/attempt-0', 1, 0, 0, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 1, false, 5470347022357084417, 8, 0.006957593000151974, 1.4219995136954822e-06, '2025-01-22 03:30:59.880044+00', '2025-01-22 03:30:59.916689+00', 5.884700021852041e-05, 0.04359300099986285, false, false, NULL, false, 8, 8, 0, 1, 0, 8, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 5470347022357084417, "task_id": "train_02_enable_wifi"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.873243+00', '2025-01-22 03:30:59.916814+00', '2025-01-22 03:30:59.873216+00', '2025-01-22 03:30:59.916814+00');
INSERT INTO cua.rollout VALUES ('0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, NULL, 'ee60e453-9215-5141-b33c-e40dd24113a2', '1ae43d2b-2585-54f9-8a30-f16a225a1650', 'killed/g0/step-2/group-0/env-1/attempt-0', 1, 0, 1, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 1, false, 5470347022357084417, 8, 0.00047511399952782085, 1.0710000424296595e-06, '2025-01-22 03:30:59.917663+00', '2025-01-22 03:30:59.973726+00', 8.781099950283533e-05, 0.05659214999923279, false, false, NULL, false, 8, 8, 0, 1, 0, 8, 0, 0, 0, 0, 0, true, false, NULL, NULL, NULL, '[]', '{"seed": 5470347022357084417, "task_id": "train_02_enable_wifi"}', NULL, NULL, 'completed', 100, 'validation', NULL, NULL, '2025-01-22 03:30:59.917302+00', '2025-01-22 03:30:59.973854+00', '2025-01-22 03:30:59.917266+00', '2025-01-22 03:30:59.973854+00');
INSERT INTO cua.rollout VALUES ('182a2db9-271d-5215-a45c-ea71f3955968', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, NULL, '03a3d66d-a092-5e39-97ea-af8ae45b850e', 'c4754f12-eb34-5a30-ab88-dea46ff27704', 'killed/g0/step-2/group-1/env-0/attempt-0', 1, 1, 0, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 1, false, 2821501840581198158, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:30:59.974438+00', NULL, '2025-01-22 03:30:59.974398+00', '2025-01-22 03:30:59.974438+00');
INSERT INTO cua.rollout VALUES ('096c7ea2-e9ba-5cfb-b27d-d138336283f0', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, '504fb36b-d468-5bf7-96d7-ea2df7401ed8', '2942d108-24f0-5ca2-af8e-69b3c9535bfd', 'evaluation/g0/eval-manual-1607a14a/group-0/env-0/attempt-0', 0, 0, 0, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, true, 475319113826176507, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.211363+00', NULL, '2025-01-22 03:31:01.211331+00', '2025-01-22 03:31:01.211363+00');
INSERT INTO cua.rollout VALUES ('a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, '504fb36b-d468-5bf7-96d7-ea2df7401ed8', '065147ff-0cf6-55ff-b4e3-a2f25f2472d4', 'evaluation/g0/eval-manual-1607a14a/group-0/env-1/attempt-0', 0, 0, 1, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, true, 555165376033445895, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.228167+00', NULL, '2025-01-22 03:31:01.228071+00', '2025-01-22 03:31:01.228167+00');
INSERT INTO cua.rollout VALUES ('c4020bfe-f874-59a7-85fa-a3eafa504e11', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, '504fb36b-d468-5bf7-96d7-ea2df7401ed8', 'd51e62be-0eda-54c6-a12f-a6be617936c9', 'evaluation/g0/eval-manual-1607a14a/group-0/env-2/attempt-0', 0, 0, 2, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, true, 7011727086573478392, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.236166+00', NULL, '2025-01-22 03:31:01.236086+00', '2025-01-22 03:31:01.236166+00');
INSERT INTO cua.rollout VALUES ('9f2db537-cb7a-575c-ae21-1500ad75967c', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, '504fb36b-d468-5bf7-96d7-ea2df7401ed8', 'f9ed6053-a703-5ff5-b6a8-5873da199c0c', 'evaluation/g0/eval-manual-1607a14a/group-0/env-3/attempt-0', 0, 0, 3, 0, '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'oracle', 0, true, 4950794350063725158, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.24355+00', NULL, '2025-01-22 03:31:01.243465+00', '2025-01-22 03:31:01.24355+00');
INSERT INTO cua.rollout VALUES ('a89174ec-47fa-540d-aa19-755e69f1e655', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, 'a54368a5-57ab-5716-a771-2281c3a1e74f', 'ba119b20-fe3c-5f80-beed-4c7565915cbc', 'evaluation/g0/eval-manual-1607a14a/group-1/env-0/attempt-0', 0, 1, 0, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 0, true, 3323162735078075917, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.27376+00', NULL, '2025-01-22 03:31:01.273712+00', '2025-01-22 03:31:01.27376+00');
INSERT INTO cua.rollout VALUES ('c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', NULL, 'eval', NULL, '1607a14a-ac04-589e-96af-99553bcee56a', NULL, 'a54368a5-57ab-5716-a771-2281c3a1e74f', '85ec85d8-1c93-541d-a5ea-0934898bfd7f', 'evaluation/g0/eval-manual-1607a14a/group-1/env-1/attempt-0', 0, 1, 1, 0, '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'oracle', 0, true, 4170383718108371946, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'env_creation', 0, 'env_creation', NULL, NULL, '2025-01-22 03:31:01.322222+00', NULL, '2025-01-22 03:31:01.322108+00', '2025-01-22 03:31:01.322222+00');


--
-- Data for Name: sample; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.sample VALUES ('8605cc9f-38e1-5bcc-acbd-7bdcd6485a7a', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', '90929f4f-ad17-582d-966c-16be5e3b986a', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 0, 1, 0, 0, 0, false, 'zero_variance', '2025-01-22 03:30:59.832206+00');
INSERT INTO cua.sample VALUES ('6374d674-5bee-5a5b-bc54-22f3102ef1f8', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', '90929f4f-ad17-582d-966c-16be5e3b986a', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 0, 1, 0, 0, 0, false, 'zero_variance', '2025-01-22 03:30:59.832206+00');
INSERT INTO cua.sample VALUES ('4c167737-293a-5a12-aacf-6e2e104d1663', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'ca16c0f7-07c8-5a5f-8b29-527954634705', '53b9bec9-6400-5533-9b41-982935794d5a', 0, 0, 0, 0, 0, false, 'zero_variance', '2025-01-22 03:30:59.832378+00');
INSERT INTO cua.sample VALUES ('9b91a899-9c32-569b-82c5-d65d094c18a3', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'ca16c0f7-07c8-5a5f-8b29-527954634705', 'b9f769d0-5386-5b75-8ada-91e523774a26', 0, 0, 0, 0, 0, false, 'zero_variance', '2025-01-22 03:30:59.832378+00');


--
-- Data for Name: status_history; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.status_history VALUES ('934af073-6ad8-542a-9018-99ef772e66a6', 'training', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', NULL, 'pending', 0, NULL, '{"type": "cua.training.created"}', '2025-01-22 03:30:59.273872+00', '2025-01-22 03:30:59.273872+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 1);
INSERT INTO cua.status_history VALUES ('2db41cb5-86b2-5afc-8d60-9214bdda93d8', 'training', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'pending', 'initializing', NULL, NULL, '{"type": "cua.training.initialization_started"}', '2025-01-22 03:30:59.276875+00', '2025-01-22 03:30:59.276875+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 2);
INSERT INTO cua.status_history VALUES ('975d3c3f-07cf-58c0-81ee-e3f57095e838', 'training', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 'initializing', 'running', NULL, NULL, '{"type": "cua.training.started"}', '2025-01-22 03:30:59.324406+00', '2025-01-22 03:30:59.324406+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 13);
INSERT INTO cua.status_history VALUES ('03ebed55-ee21-519a-8a0d-72fb304e3947', 'baseline', 'afa00e31-a763-580b-a09d-e885ca529f55', NULL, 'pending', 0, NULL, '{"type": "cua.evaluation.created"}', '2025-01-22 03:30:59.32468+00', '2025-01-22 03:30:59.32468+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 1);
INSERT INTO cua.status_history VALUES ('ec4ee6fb-cfb6-51da-af95-86d99ea69175', 'baseline', 'afa00e31-a763-580b-a09d-e885ca529f55', 'pending', 'running', NULL, NULL, '{"type": "cua.evaluation.started"}', '2025-01-22 03:30:59.324727+00', '2025-01-22 03:30:59.324727+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 2);
INSERT INTO cua.status_history VALUES ('a325b024-4cc4-5843-86e6-7f7daad47864', 'group', '91e41f64-ce71-5190-a8cd-fa6f2b4e35a9', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.324818+00', '2025-01-22 03:30:59.324818+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 3);
INSERT INTO cua.status_history VALUES ('2ca12d6a-dcab-5fd8-a9ca-3e9bf811f0a3', 'group', '9152c67d-72ad-58bd-9758-f064b92b432a', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.32484+00', '2025-01-22 03:30:59.32484+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 4);
INSERT INTO cua.status_history VALUES ('11f7344e-6c23-5672-8594-111f2ef71c4b', 'group', '91e41f64-ce71-5190-a8cd-fa6f2b4e35a9', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.332184+00', '2025-01-22 03:30:59.332184+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 5);
INSERT INTO cua.status_history VALUES ('20843188-0bb5-5c34-80cc-1b05f7adc239', 'rollout', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.332339+00', '2025-01-22 03:30:59.332339+00', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 1);
INSERT INTO cua.status_history VALUES ('5df1b4a5-1c06-5f8e-bc6a-26fdd775bb89', 'rollout', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.332374+00', '2025-01-22 03:30:59.332374+00', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 2);
INSERT INTO cua.status_history VALUES ('8b036c5b-5ad1-5e42-a38f-0d5d23af5a85', 'environment', '20cf18d7-f67b-5927-903b-09f31ac3e2fc', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.332417+00', '2025-01-22 03:30:59.332417+00', 'environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc', 1, 1);
INSERT INTO cua.status_history VALUES ('eab332ca-051d-569a-b5e0-a99acd174707', 'environment', '20cf18d7-f67b-5927-903b-09f31ac3e2fc', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.332441+00', '2025-01-22 03:30:59.332441+00', 'environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc', 1, 2);
INSERT INTO cua.status_history VALUES ('fd18857d-bd57-5779-b2fc-e7ac672f6134', 'environment', '20cf18d7-f67b-5927-903b-09f31ac3e2fc', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.444828+00', '2025-01-22 03:30:59.444828+00', 'environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc', 1, 3);
INSERT INTO cua.status_history VALUES ('89c28ef7-3704-52b0-b3fc-971778aa5628', 'rollout', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.44494+00', '2025-01-22 03:30:59.44494+00', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 3);
INSERT INTO cua.status_history VALUES ('0dda27e0-02f0-5da3-a436-cd6eed65c659', 'rollout', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.444977+00', '2025-01-22 03:30:59.444977+00', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 4);
INSERT INTO cua.status_history VALUES ('f1e2d04e-6d0e-56e2-a6e8-0e844cbb45c7', 'environment', '20cf18d7-f67b-5927-903b-09f31ac3e2fc', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.492222+00', '2025-01-22 03:30:59.492222+00', 'environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc', 1, 4);
INSERT INTO cua.status_history VALUES ('e8c59534-8c38-5c65-96a2-4a5d7269bc84', 'rollout', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.492294+00', '2025-01-22 03:30:59.492294+00', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 10);
INSERT INTO cua.status_history VALUES ('5c9a7831-6a7a-586f-b7aa-bc804c2fe519', 'group', '91e41f64-ce71-5190-a8cd-fa6f2b4e35a9', 'running', 'completed', 100, NULL, '{"type": "cua.group.finished"}', '2025-01-22 03:30:59.492483+00', '2025-01-22 03:30:59.492483+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 6);
INSERT INTO cua.status_history VALUES ('c58108d9-ad43-5816-b0e7-a76860440b31', 'group', '9152c67d-72ad-58bd-9758-f064b92b432a', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.492953+00', '2025-01-22 03:30:59.492953+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 8);
INSERT INTO cua.status_history VALUES ('7bae9c35-758e-5008-b3c6-e743c4bba0d5', 'rollout', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.493014+00', '2025-01-22 03:30:59.493014+00', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 1);
INSERT INTO cua.status_history VALUES ('e9f4081d-02ec-5801-a608-0f2d3021bd7c', 'rollout', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.49304+00', '2025-01-22 03:30:59.49304+00', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 2);
INSERT INTO cua.status_history VALUES ('fdf39fa1-ea0c-5d9a-a539-e4fecf388ddd', 'environment', '7c9474f7-fe16-5390-b246-878267b03efd', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.493069+00', '2025-01-22 03:30:59.493069+00', 'environment/7c9474f7-fe16-5390-b246-878267b03efd', 1, 1);
INSERT INTO cua.status_history VALUES ('4dfbd4b2-a271-59cf-aee9-5105b31e2b95', 'environment', '7c9474f7-fe16-5390-b246-878267b03efd', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.493089+00', '2025-01-22 03:30:59.493089+00', 'environment/7c9474f7-fe16-5390-b246-878267b03efd', 1, 2);
INSERT INTO cua.status_history VALUES ('06055160-4df0-5bc2-99f4-dad7177f0559', 'environment', '7c9474f7-fe16-5390-b246-878267b03efd', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.516692+00', '2025-01-22 03:30:59.516692+00', 'environment/7c9474f7-fe16-5390-b246-878267b03efd', 1, 3);
INSERT INTO cua.status_history VALUES ('2868e012-964e-5dd4-9d5f-8d781d5c6525', 'rollout', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.516803+00', '2025-01-22 03:30:59.516803+00', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 3);
INSERT INTO cua.status_history VALUES ('fa10b1eb-7599-50ac-9144-a25398bcd91c', 'rollout', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.516874+00', '2025-01-22 03:30:59.516874+00', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 4);
INSERT INTO cua.status_history VALUES ('6e03dc34-c381-5bd0-a7e3-fd7e844c361f', 'environment', '7c9474f7-fe16-5390-b246-878267b03efd', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.570446+00', '2025-01-22 03:30:59.570446+00', 'environment/7c9474f7-fe16-5390-b246-878267b03efd', 1, 4);
INSERT INTO cua.status_history VALUES ('9bf92995-c20d-5dab-91f1-aae2124c0b22', 'rollout', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.570536+00', '2025-01-22 03:30:59.570536+00', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 15);
INSERT INTO cua.status_history VALUES ('a681538f-7c0d-573c-813f-84a2bac3e8cd', 'group', '9152c67d-72ad-58bd-9758-f064b92b432a', 'running', 'completed', 100, NULL, '{"type": "cua.group.finished"}', '2025-01-22 03:30:59.570741+00', '2025-01-22 03:30:59.570741+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 9);
INSERT INTO cua.status_history VALUES ('6e4ced7f-bdb1-5d62-a04e-787bea9cd5b0', 'baseline', 'afa00e31-a763-580b-a09d-e885ca529f55', 'running', 'completed', 100, NULL, '{"type": "cua.evaluation.finished"}', '2025-01-22 03:30:59.57086+00', '2025-01-22 03:30:59.57086+00', 'evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 10);
INSERT INTO cua.status_history VALUES ('0ea7d72d-9fd8-54c5-bc3c-4abcf6c6ade2', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', NULL, 'pending', 0, NULL, '{"type": "cua.step.created"}', '2025-01-22 03:30:59.577046+00', '2025-01-22 03:30:59.577046+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 15);
INSERT INTO cua.status_history VALUES ('9a258b0d-3a6c-5c40-ab9d-69e61385d211', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'pending', 'rollout_collecting', NULL, NULL, '{"type": "cua.step.collection_started"}', '2025-01-22 03:30:59.577115+00', '2025-01-22 03:30:59.577115+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 16);
INSERT INTO cua.status_history VALUES ('ed8885a7-ac1a-51e3-8cf0-0bf9e62ac8d1', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'rollout_collecting', 'rollout_running', NULL, NULL, '{"type": "cua.step.rollouts_started"}', '2025-01-22 03:30:59.577158+00', '2025-01-22 03:30:59.577158+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 17);
INSERT INTO cua.status_history VALUES ('9c439779-5a84-54b8-aaf2-a9563d8bf82f', 'group', '90929f4f-ad17-582d-966c-16be5e3b986a', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.577227+00', '2025-01-22 03:30:59.577227+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 18);
INSERT INTO cua.status_history VALUES ('a03697dc-056b-548e-8ab9-2add753d81f1', 'group', 'ca16c0f7-07c8-5a5f-8b29-527954634705', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.577248+00', '2025-01-22 03:30:59.577248+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 19);
INSERT INTO cua.status_history VALUES ('81a11338-fecd-5457-b4f9-c9144f56fd81', 'group', '90929f4f-ad17-582d-966c-16be5e3b986a', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.577543+00', '2025-01-22 03:30:59.577543+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 20);
INSERT INTO cua.status_history VALUES ('f47f3016-41e7-5b30-ab37-86c94c095342', 'rollout', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.5776+00', '2025-01-22 03:30:59.5776+00', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 1);
INSERT INTO cua.status_history VALUES ('b3122e0d-6d0d-549a-881a-cc510b7e0f30', 'rollout', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.577627+00', '2025-01-22 03:30:59.577627+00', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 2);
INSERT INTO cua.status_history VALUES ('54404318-0a0f-50b6-8513-3239ee77f43e', 'environment', '6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.577663+00', '2025-01-22 03:30:59.577663+00', 'environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 1, 1);
INSERT INTO cua.status_history VALUES ('45cf0040-2920-53a6-9b09-4f106a80f354', 'environment', '6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.577684+00', '2025-01-22 03:30:59.577684+00', 'environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 1, 2);
INSERT INTO cua.status_history VALUES ('1ba22817-2f7c-581a-a388-74deccf4df9a', 'environment', '6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.592924+00', '2025-01-22 03:30:59.592924+00', 'environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 1, 3);
INSERT INTO cua.status_history VALUES ('462e81d1-5637-5489-b235-7ad5f00b4b5b', 'rollout', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.593027+00', '2025-01-22 03:30:59.593027+00', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 3);
INSERT INTO cua.status_history VALUES ('a67d9576-a998-5528-a074-5ba31a15ff7b', 'rollout', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.593058+00', '2025-01-22 03:30:59.593058+00', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 4);
INSERT INTO cua.status_history VALUES ('2595f3b9-4295-5a9e-a52f-5055c19a185d', 'environment', '6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.609625+00', '2025-01-22 03:30:59.609625+00', 'environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 1, 4);
INSERT INTO cua.status_history VALUES ('8696e9c9-f3b8-56e3-8a03-ba4fdd0cdf2f', 'rollout', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.609691+00', '2025-01-22 03:30:59.609691+00', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 11);
INSERT INTO cua.status_history VALUES ('8582147c-8302-58e9-9833-09958053fe67', 'rollout', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.610671+00', '2025-01-22 03:30:59.610671+00', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 1);
INSERT INTO cua.status_history VALUES ('9e34b858-b3b7-5371-9714-019a70b9a1e7', 'rollout', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.610874+00', '2025-01-22 03:30:59.610874+00', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 2);
INSERT INTO cua.status_history VALUES ('43aa0d53-d88a-50f2-8167-24bfd211e51e', 'environment', '1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.61102+00', '2025-01-22 03:30:59.61102+00', 'environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 1, 1);
INSERT INTO cua.status_history VALUES ('1c2e61ae-b579-57df-9b7d-624cd95686b4', 'environment', '1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.611148+00', '2025-01-22 03:30:59.611148+00', 'environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 1, 2);
INSERT INTO cua.status_history VALUES ('b6cd81ee-a468-59bd-9824-1774e81e932e', 'environment', '1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.612063+00', '2025-01-22 03:30:59.612063+00', 'environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 1, 3);
INSERT INTO cua.status_history VALUES ('702c9c6e-432e-56a9-9a18-89a25f284d44', 'rollout', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.612165+00', '2025-01-22 03:30:59.612165+00', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 3);
INSERT INTO cua.status_history VALUES ('8303d8dc-706f-5337-b9c8-1ad538d7a539', 'rollout', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.612191+00', '2025-01-22 03:30:59.612191+00', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 4);
INSERT INTO cua.status_history VALUES ('84a1c89c-e572-5586-9115-d67d5c94698b', 'environment', '1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.632195+00', '2025-01-22 03:30:59.632195+00', 'environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 1, 4);
INSERT INTO cua.status_history VALUES ('348b7c81-302d-5736-a52d-429ebc33d639', 'rollout', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.632264+00', '2025-01-22 03:30:59.632264+00', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 12);
INSERT INTO cua.status_history VALUES ('49964884-b8cc-5fc9-b879-37ca1771cd23', 'group', '90929f4f-ad17-582d-966c-16be5e3b986a', 'running', 'completed', 100, NULL, '{"type": "cua.group.finished"}', '2025-01-22 03:30:59.632461+00', '2025-01-22 03:30:59.632461+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 22);
INSERT INTO cua.status_history VALUES ('35d486bf-a22c-5252-95ac-863ffc1058b0', 'group', 'ca16c0f7-07c8-5a5f-8b29-527954634705', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.640326+00', '2025-01-22 03:30:59.640326+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 23);
INSERT INTO cua.status_history VALUES ('3e0406af-269b-5b01-9ce1-9dfa0b25d1c9', 'rollout', '53b9bec9-6400-5533-9b41-982935794d5a', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.640453+00', '2025-01-22 03:30:59.640453+00', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 1);
INSERT INTO cua.status_history VALUES ('c937cd3b-9041-5c9f-8e43-7358518142a5', 'rollout', '53b9bec9-6400-5533-9b41-982935794d5a', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.640488+00', '2025-01-22 03:30:59.640488+00', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 2);
INSERT INTO cua.status_history VALUES ('c37bebbb-f659-58e7-84a5-eb30f91410c0', 'environment', '8bac2ab6-2359-55c2-97c4-d430150dd343', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.640526+00', '2025-01-22 03:30:59.640526+00', 'environment/8bac2ab6-2359-55c2-97c4-d430150dd343', 1, 1);
INSERT INTO cua.status_history VALUES ('3c11f02e-27de-521e-b090-8288e07a11ce', 'environment', '8bac2ab6-2359-55c2-97c4-d430150dd343', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.640549+00', '2025-01-22 03:30:59.640549+00', 'environment/8bac2ab6-2359-55c2-97c4-d430150dd343', 1, 2);
INSERT INTO cua.status_history VALUES ('49c3a813-239c-5623-979a-3bab845ba044', 'environment', '8bac2ab6-2359-55c2-97c4-d430150dd343', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.676159+00', '2025-01-22 03:30:59.676159+00', 'environment/8bac2ab6-2359-55c2-97c4-d430150dd343', 1, 3);
INSERT INTO cua.status_history VALUES ('2556f511-54ad-51ab-824a-b307130de88c', 'rollout', '53b9bec9-6400-5533-9b41-982935794d5a', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.676249+00', '2025-01-22 03:30:59.676249+00', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 3);
INSERT INTO cua.status_history VALUES ('ecef83ff-b4fa-533b-8cff-95eb298116f3', 'rollout', '53b9bec9-6400-5533-9b41-982935794d5a', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.676278+00', '2025-01-22 03:30:59.676278+00', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 4);
INSERT INTO cua.status_history VALUES ('76203ed3-fc4e-56ea-97c3-e86ea87f7384', 'environment', '8bac2ab6-2359-55c2-97c4-d430150dd343', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.736281+00', '2025-01-22 03:30:59.736281+00', 'environment/8bac2ab6-2359-55c2-97c4-d430150dd343', 1, 4);
INSERT INTO cua.status_history VALUES ('d8e74a9e-9fe5-5477-8b6a-f3d058a03b54', 'rollout', '53b9bec9-6400-5533-9b41-982935794d5a', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.736357+00', '2025-01-22 03:30:59.736357+00', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 15);
INSERT INTO cua.status_history VALUES ('6fd76acc-3588-50a5-8e9c-cbad497db4df', 'rollout', 'b9f769d0-5386-5b75-8ada-91e523774a26', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.756202+00', '2025-01-22 03:30:59.756202+00', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 1);
INSERT INTO cua.status_history VALUES ('bddafece-a991-5e67-8b4d-75353d5e394d', 'rollout', 'b9f769d0-5386-5b75-8ada-91e523774a26', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.7563+00', '2025-01-22 03:30:59.7563+00', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 2);
INSERT INTO cua.status_history VALUES ('7a05405f-be6b-577c-8f7a-3581038d3320', 'environment', '1d401587-32aa-545b-a913-898967844396', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.756381+00', '2025-01-22 03:30:59.756381+00', 'environment/1d401587-32aa-545b-a913-898967844396', 1, 1);
INSERT INTO cua.status_history VALUES ('3784cb8e-94c3-534b-adb2-8c55decd582c', 'environment', '1d401587-32aa-545b-a913-898967844396', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.756409+00', '2025-01-22 03:30:59.756409+00', 'environment/1d401587-32aa-545b-a913-898967844396', 1, 2);
INSERT INTO cua.status_history VALUES ('440fddce-404b-5644-bfd2-f04493dac015', 'environment', '1d401587-32aa-545b-a913-898967844396', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.757169+00', '2025-01-22 03:30:59.757169+00', 'environment/1d401587-32aa-545b-a913-898967844396', 1, 3);
INSERT INTO cua.status_history VALUES ('8628ebf3-0135-565e-b258-47f6effbf15a', 'rollout', 'b9f769d0-5386-5b75-8ada-91e523774a26', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.757216+00', '2025-01-22 03:30:59.757216+00', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 3);
INSERT INTO cua.status_history VALUES ('a426b5d0-9117-52b3-b3e2-08d46bae9a6e', 'rollout', 'b9f769d0-5386-5b75-8ada-91e523774a26', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.75724+00', '2025-01-22 03:30:59.75724+00', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 4);
INSERT INTO cua.status_history VALUES ('4fd578e6-c43b-53b0-85e4-cfbef2b8ca95', 'environment', '1d401587-32aa-545b-a913-898967844396', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.808618+00', '2025-01-22 03:30:59.808618+00', 'environment/1d401587-32aa-545b-a913-898967844396', 1, 4);
INSERT INTO cua.status_history VALUES ('eafcb922-014b-506a-8acf-9fcbd3677a32', 'rollout', 'b9f769d0-5386-5b75-8ada-91e523774a26', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.80878+00', '2025-01-22 03:30:59.80878+00', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 15);
INSERT INTO cua.status_history VALUES ('d8be6949-242e-5210-a424-f8c3b730a069', 'group', 'ca16c0f7-07c8-5a5f-8b29-527954634705', 'running', 'completed', 100, NULL, '{"type": "cua.group.finished"}', '2025-01-22 03:30:59.808974+00', '2025-01-22 03:30:59.808974+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 25);
INSERT INTO cua.status_history VALUES ('11e0a950-f30a-5bc3-989f-1db7c3bcbb43', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'rollout_running', 'training', NULL, NULL, '{"type": "cua.step.training_started"}', '2025-01-22 03:30:59.832462+00', '2025-01-22 03:30:59.832462+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 30);
INSERT INTO cua.status_history VALUES ('5a969603-3252-5320-9b46-384725b363c0', 'step', 'a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'training', 'completed', 100, NULL, '{"type": "cua.step.finished"}', '2025-01-22 03:30:59.866917+00', '2025-01-22 03:30:59.866917+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 33);
INSERT INTO cua.status_history VALUES ('cc6cf184-9b18-5a0d-a7b9-6206f3403c01', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', NULL, 'pending', 0, NULL, '{"type": "cua.step.created"}', '2025-01-22 03:30:59.872625+00', '2025-01-22 03:30:59.872625+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 35);
INSERT INTO cua.status_history VALUES ('6ff1c2de-51a2-539f-9349-f8e3d5f588b7', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', 'pending', 'rollout_collecting', NULL, NULL, '{"type": "cua.step.collection_started"}', '2025-01-22 03:30:59.872679+00', '2025-01-22 03:30:59.872679+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 36);
INSERT INTO cua.status_history VALUES ('e9c999de-1a30-56aa-a80b-05375de320de', 'step', 'e06b464a-3272-52fc-ba47-b04771cad175', 'rollout_collecting', 'rollout_running', NULL, NULL, '{"type": "cua.step.rollouts_started"}', '2025-01-22 03:30:59.872729+00', '2025-01-22 03:30:59.872729+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 37);
INSERT INTO cua.status_history VALUES ('b3ad7059-55ca-52cc-9b80-4e3da9978083', 'group', 'ee60e453-9215-5141-b33c-e40dd24113a2', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.87281+00', '2025-01-22 03:30:59.87281+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 38);
INSERT INTO cua.status_history VALUES ('ad1559f8-e3cf-5b73-93da-192fdda7c689', 'group', '03a3d66d-a092-5e39-97ea-af8ae45b850e', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:30:59.872841+00', '2025-01-22 03:30:59.872841+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 39);
INSERT INTO cua.status_history VALUES ('a70736de-1fb8-5a28-bc20-3feb348d2ea5', 'group', 'ee60e453-9215-5141-b33c-e40dd24113a2', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.873161+00', '2025-01-22 03:30:59.873161+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 40);
INSERT INTO cua.status_history VALUES ('6d62e665-6a76-5c1c-8edc-80ffb04090ee', 'rollout', '79d60687-f5e7-5984-bc4b-bbeed4908886', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.873216+00', '2025-01-22 03:30:59.873216+00', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 1);
INSERT INTO cua.status_history VALUES ('8f6ba2db-419f-5800-9c5c-83eaf389ec69', 'rollout', '79d60687-f5e7-5984-bc4b-bbeed4908886', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.873243+00', '2025-01-22 03:30:59.873243+00', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 2);
INSERT INTO cua.status_history VALUES ('371bed4f-59e9-5e45-bbe5-83c09d7a665c', 'environment', '01951109-a548-5e74-b708-6ea73797a004', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.873274+00', '2025-01-22 03:30:59.873274+00', 'environment/01951109-a548-5e74-b708-6ea73797a004', 1, 1);
INSERT INTO cua.status_history VALUES ('0e1c1e7e-4bd9-50a2-ae84-31e50b1cabd8', 'environment', '01951109-a548-5e74-b708-6ea73797a004', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.873294+00', '2025-01-22 03:30:59.873294+00', 'environment/01951109-a548-5e74-b708-6ea73797a004', 1, 2);
INSERT INTO cua.status_history VALUES ('75292858-70d1-5f94-b00b-1a6c3cebe388', 'environment', '01951109-a548-5e74-b708-6ea73797a004', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.8801+00', '2025-01-22 03:30:59.8801+00', 'environment/01951109-a548-5e74-b708-6ea73797a004', 1, 3);
INSERT INTO cua.status_history VALUES ('5e267b78-fb79-5aa8-9f2e-598c8830a845', 'rollout', '79d60687-f5e7-5984-bc4b-bbeed4908886', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.88016+00', '2025-01-22 03:30:59.88016+00', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 3);
INSERT INTO cua.status_history VALUES ('297abbf5-0365-53ab-90ec-43fc2e834fe4', 'rollout', '79d60687-f5e7-5984-bc4b-bbeed4908886', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.880187+00', '2025-01-22 03:30:59.880187+00', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 4);
INSERT INTO cua.status_history VALUES ('c113db6c-6e2b-5c71-b0ab-8c3bada95906', 'environment', '01951109-a548-5e74-b708-6ea73797a004', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.916748+00', '2025-01-22 03:30:59.916748+00', 'environment/01951109-a548-5e74-b708-6ea73797a004', 1, 4);
INSERT INTO cua.status_history VALUES ('cb39edcc-f7fc-5064-aa19-5f0cd2b4fe61', 'rollout', '79d60687-f5e7-5984-bc4b-bbeed4908886', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.916814+00', '2025-01-22 03:30:59.916814+00', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 15);
INSERT INTO cua.status_history VALUES ('680e6486-604f-56d9-88f6-25caaaa2b0e5', 'rollout', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.917266+00', '2025-01-22 03:30:59.917266+00', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 1);
INSERT INTO cua.status_history VALUES ('12f32ad4-469d-5d2e-843f-e8b38e1d48a4', 'rollout', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.917302+00', '2025-01-22 03:30:59.917302+00', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 2);
INSERT INTO cua.status_history VALUES ('433213a6-84a5-5827-a14c-8254967d9727', 'environment', '1ae43d2b-2585-54f9-8a30-f16a225a1650', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.917333+00', '2025-01-22 03:30:59.917333+00', 'environment/1ae43d2b-2585-54f9-8a30-f16a225a1650', 1, 1);
INSERT INTO cua.status_history VALUES ('ff145f66-b7d0-50ef-9a2c-516bea20a4ee', 'environment', '1ae43d2b-2585-54f9-8a30-f16a225a1650', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.917353+00', '2025-01-22 03:30:59.917353+00', 'environment/1ae43d2b-2585-54f9-8a30-f16a225a1650', 1, 2);
INSERT INTO cua.status_history VALUES ('a84ad4aa-3d8f-50dd-a543-b3d49b6c5640', 'environment', '1ae43d2b-2585-54f9-8a30-f16a225a1650', 'creating', 'running', NULL, NULL, '{"type": "cua.environment.started"}', '2025-01-22 03:30:59.917685+00', '2025-01-22 03:30:59.917685+00', 'environment/1ae43d2b-2585-54f9-8a30-f16a225a1650', 1, 3);
INSERT INTO cua.status_history VALUES ('dd914dd7-bae5-5100-939e-b5f167bbbb09', 'rollout', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'env_creation', 'agent_init', NULL, NULL, '{"type": "cua.rollout.agent_initialized"}', '2025-01-22 03:30:59.917713+00', '2025-01-22 03:30:59.917713+00', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 3);
INSERT INTO cua.status_history VALUES ('4d207759-9ef0-55cd-bfd4-525eca544f6c', 'rollout', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'agent_init', 'running', NULL, NULL, '{"type": "cua.rollout.started"}', '2025-01-22 03:30:59.917733+00', '2025-01-22 03:30:59.917733+00', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 4);
INSERT INTO cua.status_history VALUES ('e3e2314c-1d31-5cb6-96f1-bd1ee087c0c2', 'environment', '1ae43d2b-2585-54f9-8a30-f16a225a1650', 'running', 'terminated', NULL, NULL, '{"type": "cua.environment.terminated"}', '2025-01-22 03:30:59.973788+00', '2025-01-22 03:30:59.973788+00', 'environment/1ae43d2b-2585-54f9-8a30-f16a225a1650', 1, 4);
INSERT INTO cua.status_history VALUES ('1db560a0-ab7c-5aea-9653-514e317adf61', 'rollout', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'running', 'completed', NULL, NULL, '{"type": "cua.rollout.finished"}', '2025-01-22 03:30:59.973854+00', '2025-01-22 03:30:59.973854+00', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 15);
INSERT INTO cua.status_history VALUES ('d88e9937-8d9f-551a-b0f5-99bae9b411d4', 'group', 'ee60e453-9215-5141-b33c-e40dd24113a2', 'running', 'completed', 100, NULL, '{"type": "cua.group.finished"}', '2025-01-22 03:30:59.974018+00', '2025-01-22 03:30:59.974018+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 42);
INSERT INTO cua.status_history VALUES ('c052ed9a-b0ce-537d-8824-3ebe4c687029', 'group', '03a3d66d-a092-5e39-97ea-af8ae45b850e', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:30:59.974318+00', '2025-01-22 03:30:59.974318+00', 'training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 43);
INSERT INTO cua.status_history VALUES ('70a676c2-1c58-53c9-b648-f76713a332d6', 'rollout', '182a2db9-271d-5215-a45c-ea71f3955968', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:30:59.974398+00', '2025-01-22 03:30:59.974398+00', 'rollout/182a2db9-271d-5215-a45c-ea71f3955968', 1, 1);
INSERT INTO cua.status_history VALUES ('08462f04-64dd-57f5-9a12-dd6bec71ef0c', 'rollout', '182a2db9-271d-5215-a45c-ea71f3955968', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:30:59.974438+00', '2025-01-22 03:30:59.974438+00', 'rollout/182a2db9-271d-5215-a45c-ea71f3955968', 1, 2);
INSERT INTO cua.status_history VALUES ('e0f99a8f-e774-555c-a462-598a265ee586', 'environment', 'c4754f12-eb34-5a30-ab88-dea46ff27704', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:30:59.974476+00', '2025-01-22 03:30:59.974476+00', 'environment/c4754f12-eb34-5a30-ab88-dea46ff27704', 1, 1);
INSERT INTO cua.status_history VALUES ('c977f84e-5bc7-5836-9554-9fb5cac795a6', 'environment', 'c4754f12-eb34-5a30-ab88-dea46ff27704', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:30:59.974505+00', '2025-01-22 03:30:59.974505+00', 'environment/c4754f12-eb34-5a30-ab88-dea46ff27704', 1, 2);
INSERT INTO cua.status_history VALUES ('d46c70ad-042f-54a2-9cf5-af25f1943ae8', 'eval', '1607a14a-ac04-589e-96af-99553bcee56a', NULL, 'pending', 0, NULL, '{"type": "cua.evaluation.created"}', '2025-01-22 03:31:01.206138+00', '2025-01-22 03:31:01.206138+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 5);
INSERT INTO cua.status_history VALUES ('2c7f3627-8f97-584b-bcf8-0ddfd3469ba0', 'eval', '1607a14a-ac04-589e-96af-99553bcee56a', 'pending', 'running', NULL, NULL, '{"type": "cua.evaluation.started"}', '2025-01-22 03:31:01.20618+00', '2025-01-22 03:31:01.20618+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 6);
INSERT INTO cua.status_history VALUES ('fccc7485-e083-5383-8f9b-3de368571aea', 'group', '504fb36b-d468-5bf7-96d7-ea2df7401ed8', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:31:01.206276+00', '2025-01-22 03:31:01.206276+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 7);
INSERT INTO cua.status_history VALUES ('0cd707b9-948a-55ff-80eb-e9cf5b18f247', 'group', 'a54368a5-57ab-5716-a771-2281c3a1e74f', NULL, 'pending', 0, NULL, '{"type": "cua.group.created"}', '2025-01-22 03:31:01.206305+00', '2025-01-22 03:31:01.206305+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 8);
INSERT INTO cua.status_history VALUES ('82675c16-d5e7-57b8-b2bc-daa5231e3bd9', 'group', '504fb36b-d468-5bf7-96d7-ea2df7401ed8', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:31:01.211246+00', '2025-01-22 03:31:01.211246+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 9);
INSERT INTO cua.status_history VALUES ('80f22ad0-c342-5957-bec6-57d15d7aad62', 'rollout', '096c7ea2-e9ba-5cfb-b27d-d138336283f0', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.211331+00', '2025-01-22 03:31:01.211331+00', 'rollout/096c7ea2-e9ba-5cfb-b27d-d138336283f0', 1, 1);
INSERT INTO cua.status_history VALUES ('f2937d39-3d96-598a-94e5-6113b8364274', 'rollout', '096c7ea2-e9ba-5cfb-b27d-d138336283f0', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.211363+00', '2025-01-22 03:31:01.211363+00', 'rollout/096c7ea2-e9ba-5cfb-b27d-d138336283f0', 1, 2);
INSERT INTO cua.status_history VALUES ('b4d4202f-5ef5-5b90-b4e5-d5f600c28772', 'environment', '2942d108-24f0-5ca2-af8e-69b3c9535bfd', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.211401+00', '2025-01-22 03:31:01.211401+00', 'environment/2942d108-24f0-5ca2-af8e-69b3c9535bfd', 1, 1);
INSERT INTO cua.status_history VALUES ('11e77374-cf83-5816-9ec9-39eee6c8adad', 'environment', '2942d108-24f0-5ca2-af8e-69b3c9535bfd', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.211425+00', '2025-01-22 03:31:01.211425+00', 'environment/2942d108-24f0-5ca2-af8e-69b3c9535bfd', 1, 2);
INSERT INTO cua.status_history VALUES ('68570355-60e7-571a-ba75-57c2fcf52ecb', 'rollout', 'a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.228071+00', '2025-01-22 03:31:01.228071+00', 'rollout/a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', 1, 1);
INSERT INTO cua.status_history VALUES ('82fa0571-8107-5ebc-94e9-e2e77b716c1c', 'rollout', 'a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.228167+00', '2025-01-22 03:31:01.228167+00', 'rollout/a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', 1, 2);
INSERT INTO cua.status_history VALUES ('0f4c8d31-be2f-57f4-959c-ae787b94e851', 'environment', '065147ff-0cf6-55ff-b4e3-a2f25f2472d4', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.228221+00', '2025-01-22 03:31:01.228221+00', 'environment/065147ff-0cf6-55ff-b4e3-a2f25f2472d4', 1, 1);
INSERT INTO cua.status_history VALUES ('e0cd731f-662d-5dd6-af3f-0654233a891a', 'environment', '065147ff-0cf6-55ff-b4e3-a2f25f2472d4', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.228257+00', '2025-01-22 03:31:01.228257+00', 'environment/065147ff-0cf6-55ff-b4e3-a2f25f2472d4', 1, 2);
INSERT INTO cua.status_history VALUES ('6d68cfb9-25fb-5773-ad3a-eccbd208af26', 'rollout', 'c4020bfe-f874-59a7-85fa-a3eafa504e11', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.236086+00', '2025-01-22 03:31:01.236086+00', 'rollout/c4020bfe-f874-59a7-85fa-a3eafa504e11', 1, 1);
INSERT INTO cua.status_history VALUES ('f3dbd3df-d773-5ea7-b2d1-7016c7160175', 'rollout', 'c4020bfe-f874-59a7-85fa-a3eafa504e11', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.236166+00', '2025-01-22 03:31:01.236166+00', 'rollout/c4020bfe-f874-59a7-85fa-a3eafa504e11', 1, 2);
INSERT INTO cua.status_history VALUES ('fd8cc72b-b853-5974-b9aa-2f3dd3509a2a', 'environment', 'd51e62be-0eda-54c6-a12f-a6be617936c9', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.236227+00', '2025-01-22 03:31:01.236227+00', 'environment/d51e62be-0eda-54c6-a12f-a6be617936c9', 1, 1);
INSERT INTO cua.status_history VALUES ('686c1b2c-bf04-5d7f-b3df-f84af177a86d', 'environment', 'd51e62be-0eda-54c6-a12f-a6be617936c9', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.236256+00', '2025-01-22 03:31:01.236256+00', 'environment/d51e62be-0eda-54c6-a12f-a6be617936c9', 1, 2);
INSERT INTO cua.status_history VALUES ('43b6e01d-56f5-5a6b-80f6-65a3a2cd3e46', 'rollout', '9f2db537-cb7a-575c-ae21-1500ad75967c', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.243465+00', '2025-01-22 03:31:01.243465+00', 'rollout/9f2db537-cb7a-575c-ae21-1500ad75967c', 1, 1);
INSERT INTO cua.status_history VALUES ('ba8ce6d4-329b-509e-a038-e402c4a0aa09', 'rollout', '9f2db537-cb7a-575c-ae21-1500ad75967c', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.24355+00', '2025-01-22 03:31:01.24355+00', 'rollout/9f2db537-cb7a-575c-ae21-1500ad75967c', 1, 2);
INSERT INTO cua.status_history VALUES ('229311bc-fb6a-50ba-86a1-d8d462db7e65', 'environment', 'f9ed6053-a703-5ff5-b6a8-5873da199c0c', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.243634+00', '2025-01-22 03:31:01.243634+00', 'environment/f9ed6053-a703-5ff5-b6a8-5873da199c0c', 1, 1);
INSERT INTO cua.status_history VALUES ('6d494a4d-5dac-5067-a8e6-f47247bed73c', 'environment', 'f9ed6053-a703-5ff5-b6a8-5873da199c0c', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.243664+00', '2025-01-22 03:31:01.243664+00', 'environment/f9ed6053-a703-5ff5-b6a8-5873da199c0c', 1, 2);
INSERT INTO cua.status_history VALUES ('1c19aa3b-007d-516c-9438-fe301c5b7ac6', 'group', 'a54368a5-57ab-5716-a771-2281c3a1e74f', 'pending', 'running', NULL, NULL, '{"type": "cua.group.started"}', '2025-01-22 03:31:01.273538+00', '2025-01-22 03:31:01.273538+00', 'evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 10);
INSERT INTO cua.status_history VALUES ('cd03c858-b2ca-5e68-b243-d7dae00fb21e', 'rollout', 'a89174ec-47fa-540d-aa19-755e69f1e655', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.273712+00', '2025-01-22 03:31:01.273712+00', 'rollout/a89174ec-47fa-540d-aa19-755e69f1e655', 1, 1);
INSERT INTO cua.status_history VALUES ('db053ebc-4f17-5103-afe0-5dab67dd08e6', 'rollout', 'a89174ec-47fa-540d-aa19-755e69f1e655', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.27376+00', '2025-01-22 03:31:01.27376+00', 'rollout/a89174ec-47fa-540d-aa19-755e69f1e655', 1, 2);
INSERT INTO cua.status_history VALUES ('a944510c-7969-52d9-97b5-5399c9e6dfcc', 'environment', 'ba119b20-fe3c-5f80-beed-4c7565915cbc', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.273834+00', '2025-01-22 03:31:01.273834+00', 'environment/ba119b20-fe3c-5f80-beed-4c7565915cbc', 1, 1);
INSERT INTO cua.status_history VALUES ('37dd70f7-3a48-5adf-8a11-9a03200d006f', 'environment', 'ba119b20-fe3c-5f80-beed-4c7565915cbc', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.288174+00', '2025-01-22 03:31:01.288174+00', 'environment/ba119b20-fe3c-5f80-beed-4c7565915cbc', 1, 2);
INSERT INTO cua.status_history VALUES ('9c990591-926b-5354-8397-c4dbd73d2f67', 'rollout', 'c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', NULL, 'pending', 0, NULL, '{"type": "cua.rollout.created"}', '2025-01-22 03:31:01.322108+00', '2025-01-22 03:31:01.322108+00', 'rollout/c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', 1, 1);
INSERT INTO cua.status_history VALUES ('3b7d8020-b375-5fb1-9415-504c6b9f8a34', 'rollout', 'c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', 'pending', 'env_creation', NULL, NULL, '{"type": "cua.rollout.environment_requested"}', '2025-01-22 03:31:01.322222+00', '2025-01-22 03:31:01.322222+00', 'rollout/c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', 1, 2);
INSERT INTO cua.status_history VALUES ('1faf8354-a51c-56fd-950d-07f8d9844751', 'environment', '85ec85d8-1c93-541d-a5ea-0934898bfd7f', NULL, 'pending', 0, NULL, '{"type": "cua.environment.requested"}', '2025-01-22 03:31:01.322267+00', '2025-01-22 03:31:01.322267+00', 'environment/85ec85d8-1c93-541d-a5ea-0934898bfd7f', 1, 1);
INSERT INTO cua.status_history VALUES ('7849038c-36a9-524f-9a09-0c3c37ec2909', 'environment', '85ec85d8-1c93-541d-a5ea-0934898bfd7f', 'pending', 'creating', NULL, NULL, '{"type": "cua.environment.creation_started"}', '2025-01-22 03:31:01.322291+00', '2025-01-22 03:31:01.322291+00', 'environment/85ec85d8-1c93-541d-a5ea-0934898bfd7f', 1, 2);


--
-- Data for Name: step; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.step VALUES ('a1047b67-6b0c-5f6c-8631-41f309fd1f33', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 0, 1, false, 0, 100, 100, '2025-01-22 03:30:59.577142+00', '2025-01-22 03:30:59.83243+00', '2025-01-22 03:30:59.83243+00', '2025-01-22 03:30:59.832695+00', 1e-05, 'oracle', NULL, 1, 0, 0, 0, 0.5, 0.5, 4, 0, '{"optim/lr": 0.00001, "time/train": 0.0, "time/rollout": 0.25522181399992405, "optim/entropy": null, "progress/batch": 0, "env/all/success": 0.5, "optim/num_tokens": 0, "progress/done_frac": 0.3333333333333333, "env/all/total_turns": 25, "env/all/reward/total": 0.5, "env/all/total_episodes": 4, "optim/kl_sample_train_v1": null, "optim/kl_sample_train_v2": null, "env/all/turns_per_episode": 6.25, "env/all/ac_tokens_per_turn": 0.0, "env/all/by_group/frac_mixed": 0.0, "env/all/by_group/frac_all_bad": 0.5, "rollout_errors/groups_skipped": 0, "env/all/by_group/frac_all_good": 0.5}', 'completed', 100, 'checkpointing', NULL, NULL, '2025-01-22 03:30:59.577115+00', '2025-01-22 03:30:59.832695+00', '2025-01-22 03:30:59.577046+00', '2025-01-22 03:30:59.866917+00', 0.006397507277723789, 0.16800847600006819, 0);
INSERT INTO cua.step VALUES ('e06b464a-3272-52fc-ba47-b04771cad175', 'b06f1f91-4a61-5759-95ea-e0a480e6025f', 0, 2, false, 1, 0, 0, '2025-01-22 03:30:59.872714+00', NULL, NULL, NULL, 1e-05, 'oracle', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'rollout_running', 0, 'rollout_execution', NULL, NULL, '2025-01-22 03:30:59.872679+00', NULL, '2025-01-22 03:30:59.872625+00', '2025-01-22 03:30:59.872729+00', NULL, NULL, NULL);


--
-- Data for Name: stream_position; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.stream_position VALUES ('training/b06f1f91-4a61-5759-95ea-e0a480e6025f', 1, 43, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"step/e06b464a-3272-52fc-ba47-b04771cad175": "rollout_running", "group/03a3d66d-a092-5e39-97ea-af8ae45b850e": "running", "training/b06f1f91-4a61-5759-95ea-e0a480e6025f": "running"}', NULL, false, 0, '2025-01-22 03:30:59.974318+00');
INSERT INTO cua.stream_position VALUES ('evaluation/afa00e31-a763-580b-a09d-e885ca529f55', 1, 10, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"baseline/afa00e31-a763-580b-a09d-e885ca529f55": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.57086+00');
INSERT INTO cua.stream_position VALUES ('rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, 10, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.492294+00');
INSERT INTO cua.stream_position VALUES ('environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/20cf18d7-f67b-5927-903b-09f31ac3e2fc": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.492222+00');
INSERT INTO cua.stream_position VALUES ('rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, 15, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.570536+00');
INSERT INTO cua.stream_position VALUES ('environment/7c9474f7-fe16-5390-b246-878267b03efd', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/7c9474f7-fe16-5390-b246-878267b03efd": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.570446+00');
INSERT INTO cua.stream_position VALUES ('rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, 11, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.609691+00');
INSERT INTO cua.stream_position VALUES ('environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/6a8b48c4-eaa5-56ff-8771-b331fa4c28e9": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.609625+00');
INSERT INTO cua.stream_position VALUES ('rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, 12, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.632264+00');
INSERT INTO cua.stream_position VALUES ('environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/1f20ac91-c1b1-5d02-bda1-79f030f8e2ab": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.632195+00');
INSERT INTO cua.stream_position VALUES ('rollout/53b9bec9-6400-5533-9b41-982935794d5a', 1, 15, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/53b9bec9-6400-5533-9b41-982935794d5a": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.736357+00');
INSERT INTO cua.stream_position VALUES ('environment/8bac2ab6-2359-55c2-97c4-d430150dd343', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/8bac2ab6-2359-55c2-97c4-d430150dd343": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.736281+00');
INSERT INTO cua.stream_position VALUES ('rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 1, 15, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/b9f769d0-5386-5b75-8ada-91e523774a26": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.80878+00');
INSERT INTO cua.stream_position VALUES ('environment/1d401587-32aa-545b-a913-898967844396', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/1d401587-32aa-545b-a913-898967844396": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.808618+00');
INSERT INTO cua.stream_position VALUES ('rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', 1, 15, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/79d60687-f5e7-5984-bc4b-bbeed4908886": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.916814+00');
INSERT INTO cua.stream_position VALUES ('environment/01951109-a548-5e74-b708-6ea73797a004', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/01951109-a548-5e74-b708-6ea73797a004": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.916748+00');
INSERT INTO cua.stream_position VALUES ('rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, 15, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f": "completed"}', NULL, false, 0, '2025-01-22 03:30:59.973854+00');
INSERT INTO cua.stream_position VALUES ('environment/1ae43d2b-2585-54f9-8a30-f16a225a1650', 1, 4, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/1ae43d2b-2585-54f9-8a30-f16a225a1650": "terminated"}', NULL, false, 0, '2025-01-22 03:30:59.973788+00');
INSERT INTO cua.stream_position VALUES ('rollout/182a2db9-271d-5215-a45c-ea71f3955968', 1, 2, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"rollout/182a2db9-271d-5215-a45c-ea71f3955968": "env_creation"}', NULL, false, 0, '2025-01-22 03:30:59.974438+00');
INSERT INTO cua.stream_position VALUES ('environment/c4754f12-eb34-5a30-ab88-dea46ff27704', 1, 2, '//trainer/26244/20250122T033059-96eee5e1', '{}', '[]', '{"environment/c4754f12-eb34-5a30-ab88-dea46ff27704": "creating"}', NULL, false, 0, '2025-01-22 03:30:59.974505+00');
INSERT INTO cua.stream_position VALUES ('evaluation/1607a14a-ac04-589e-96af-99553bcee56a', 1, 10, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"eval/1607a14a-ac04-589e-96af-99553bcee56a": "running", "group/504fb36b-d468-5bf7-96d7-ea2df7401ed8": "running", "group/a54368a5-57ab-5716-a771-2281c3a1e74f": "running"}', NULL, false, 0, '2025-01-22 03:31:01.273538+00');
INSERT INTO cua.stream_position VALUES ('rollout/096c7ea2-e9ba-5cfb-b27d-d138336283f0', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/096c7ea2-e9ba-5cfb-b27d-d138336283f0": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.211363+00');
INSERT INTO cua.stream_position VALUES ('environment/2942d108-24f0-5ca2-af8e-69b3c9535bfd', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/2942d108-24f0-5ca2-af8e-69b3c9535bfd": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.211425+00');
INSERT INTO cua.stream_position VALUES ('rollout/a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/a8f83a7c-7ac4-5716-a85a-a8aa8d5c7b77": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.228167+00');
INSERT INTO cua.stream_position VALUES ('environment/065147ff-0cf6-55ff-b4e3-a2f25f2472d4', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/065147ff-0cf6-55ff-b4e3-a2f25f2472d4": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.228257+00');
INSERT INTO cua.stream_position VALUES ('rollout/c4020bfe-f874-59a7-85fa-a3eafa504e11', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/c4020bfe-f874-59a7-85fa-a3eafa504e11": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.236166+00');
INSERT INTO cua.stream_position VALUES ('environment/d51e62be-0eda-54c6-a12f-a6be617936c9', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/d51e62be-0eda-54c6-a12f-a6be617936c9": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.236256+00');
INSERT INTO cua.stream_position VALUES ('rollout/9f2db537-cb7a-575c-ae21-1500ad75967c', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/9f2db537-cb7a-575c-ae21-1500ad75967c": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.24355+00');
INSERT INTO cua.stream_position VALUES ('environment/f9ed6053-a703-5ff5-b6a8-5873da199c0c', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/f9ed6053-a703-5ff5-b6a8-5873da199c0c": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.243664+00');
INSERT INTO cua.stream_position VALUES ('rollout/a89174ec-47fa-540d-aa19-755e69f1e655', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/a89174ec-47fa-540d-aa19-755e69f1e655": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.27376+00');
INSERT INTO cua.stream_position VALUES ('environment/ba119b20-fe3c-5f80-beed-4c7565915cbc', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/ba119b20-fe3c-5f80-beed-4c7565915cbc": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.288174+00');
INSERT INTO cua.stream_position VALUES ('rollout/c5abbc3c-7f1c-5b74-9a66-6296bcb310c0', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"rollout/c5abbc3c-7f1c-5b74-9a66-6296bcb310c0": "env_creation"}', NULL, false, 0, '2025-01-22 03:31:01.322222+00');
INSERT INTO cua.stream_position VALUES ('environment/85ec85d8-1c93-541d-a5ea-0934898bfd7f', 1, 2, '//trainer/26263/20250122T033101-6aa72717', '{}', '[]', '{"environment/85ec85d8-1c93-541d-a5ea-0934898bfd7f": "creating"}', NULL, false, 0, '2025-01-22 03:31:01.322291+00');


--
-- Data for Name: task; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.task VALUES ('2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'train_01_open_settings', 'fdcdc07c0d5d7556a8670d639935618d21e88d7fc925e199ad38aa710104708b', 'Open Settings', 'Open the Settings app.', 'easy', 'app', 5, 'shell', 'current_app', 'com.android.settings', '[]', '[]', NULL, 'demo_training', '2025-01-22 03:30:59.310638+00', '2025-01-22 03:31:01.202324+00');
INSERT INTO cua.task VALUES ('634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'train_02_enable_wifi', '0bb1bd326a00e6092b151287c8aa016b225e1a5d607c312fe1b6921af2aa81d5', 'Turn Wi-Fi on', 'Turn Wi-Fi on in Settings.', 'easy', 'settings', 8, 'shell', 'wifi_enabled', 'True', '[]', '[]', NULL, 'demo_training', '2025-01-22 03:30:59.310834+00', '2025-01-22 03:31:01.205964+00');


--
-- Data for Name: training; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.training VALUES ('b06f1f91-4a61-5759-95ea-e0a480e6025f', 'killed', 'rl', 0, '/srv/cua-train/runs/killed', 'oracle', 32, 1e-05, 4, 2, 2, 2048, 1, 0, 1, 20, 0, 'android', 'auto', NULL, NULL, 1, 3, '2025-01-22 03:30:59.27743+00', '/srv/cua-train/runs/killed/checkpoints/generation-0/step-000000', '{"seed": 0, "tasks": {"task_ids": ["train_01_open_settings", "train_02_enable_wifi"], "source_type": "ids"}, "ablate": "none", "loss_fn": "importance_sampling", "box_type": "android", "log_path": null, "lora_rank": 32, "max_turns": 20, "num_steps": 3, "turn_cost": 0.0, "eval_every": 0, "eval_tasks": null, "group_size": 2, "max_tokens": 2048, "model_name": "oracle", "save_every": 2, "temperature": 1.0, "max_attempts": 3, "num_substeps": 1, "oracle_noise": 0.6, "baseline_only": false, "eval_episodes": 2, "learning_rate": 0.00001, "renderer_name": "auto", "skip_baseline": false, "training_name": "killed", "failure_policy": "retry", "min_group_size": 2, "kl_penalty_coef": 0.0, "advantage_by_std": false, "eval_temperature": 0.0, "groups_per_batch": 2, "parse_error_cost": 0.0, "load_checkpoint_path": null, "max_task_time_seconds": 1800.0, "max_turn_time_seconds": 300.0, "max_concurrent_rollouts": 1}', 'running', 29.75609756097561, 'checkpointing', NULL, NULL, '2025-01-22 03:30:59.276875+00', NULL, '2025-01-22 03:30:59.273872+00', '2025-01-22 03:30:59.872265+00', 0.006397507277723789, 1.0892495239922937, 0.9212410479922255);


--
-- Data for Name: turn; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.turn VALUES ('7aa356d3-6954-5bcb-b448-08d25e1c2343', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 1, '2025-01-22 03:30:59.445013+00', '2025-01-22 03:30:59.47206+00', 0.027047, 0, false, 0, '{"sample_s": 0.000811, "environment_s": 0.023182}', 'click(62,85)', NULL, NULL, '2025-01-22 03:30:59.472396+00');
INSERT INTO cua.turn VALUES ('90d741f7-c97c-5ec0-8ee6-ecb05ef7ee1c', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 2, '2025-01-22 03:30:59.472523+00', '2025-01-22 03:30:59.484927+00', 0.012404, 0, false, 0, '{"sample_s": 0.000424, "environment_s": 0.011812}', 'swipe(down)', NULL, NULL, '2025-01-22 03:30:59.485129+00');
INSERT INTO cua.turn VALUES ('82aee2c5-b25c-524a-9dfc-e977654f6aa6', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 3, '2025-01-22 03:30:59.485233+00', '2025-01-22 03:30:59.485631+00', 0.000398, 0, true, 0, '{"sample_s": 0.000266, "environment_s": 0.000002}', 'terminate(success)', NULL, NULL, '2025-01-22 03:30:59.485701+00');
INSERT INTO cua.turn VALUES ('75023cb4-7279-5afa-88ce-49df712673ff', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 1, '2025-01-22 03:30:59.51691+00', '2025-01-22 03:30:59.52622+00', 0.00931, 0, false, 0, '{"sample_s": 0.000531, "environment_s": 0.008706}', 'swipe(left)', NULL, NULL, '2025-01-22 03:30:59.526415+00');
INSERT INTO cua.turn VALUES ('b1ace16a-0425-5a2c-bcba-cffb87f5e4ff', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 2, '2025-01-22 03:30:59.526516+00', '2025-01-22 03:30:59.548124+00', 0.021608, 0, false, 0, '{"sample_s": 0.00025, "environment_s": 0.013545}', 'swipe(up)', NULL, NULL, '2025-01-22 03:30:59.548411+00');
INSERT INTO cua.turn VALUES ('ab16835a-eba3-53af-ab48-caeb4ea0c0c7', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 3, '2025-01-22 03:30:59.548557+00', '2025-01-22 03:30:59.549214+00', 0.000657, 0, false, 0, '{"sample_s": 0.00048, "environment_s": 0.000112}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.549288+00');
INSERT INTO cua.turn VALUES ('f612d32c-b338-5be0-a777-ee6bb7e747c8', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 4, '2025-01-22 03:30:59.549329+00', '2025-01-22 03:30:59.549652+00', 0.000323, 0, false, 0, '{"sample_s": 0.000169, "environment_s": 0.000126}', 'click(50,68)', NULL, NULL, '2025-01-22 03:30:59.549709+00');
INSERT INTO cua.turn VALUES ('9908bbfc-bb33-5640-8d3c-e9b694caab82', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 5, '2025-01-22 03:30:59.549744+00', '2025-01-22 03:30:59.567447+00', 0.017703, 0, false, 0, '{"sample_s": 0.000141, "environment_s": 0.017007}', 'click(74,37)', NULL, NULL, '2025-01-22 03:30:59.567718+00');
INSERT INTO cua.turn VALUES ('bbbf0bd8-6b1c-5919-9a80-c757b4b9fdb3', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 6, '2025-01-22 03:30:59.56783+00', '2025-01-22 03:30:59.568486+00', 0.000656, 0, false, 0, '{"sample_s": 0.000258, "environment_s": 0.000227}', 'click(38,10)', NULL, NULL, '2025-01-22 03:30:59.568574+00');
INSERT INTO cua.turn VALUES ('3860064b-85f3-598c-9083-78702a3beecb', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 7, '2025-01-22 03:30:59.56862+00', '2025-01-22 03:30:59.56905+00', 0.00043, 0, false, 0, '{"sample_s": 0.000125, "environment_s": 0.000171}', 'click(50,96)', NULL, NULL, '2025-01-22 03:30:59.569127+00');
INSERT INTO cua.turn VALUES ('126322c2-fb3a-586d-b416-22d1ea2701bc', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 8, '2025-01-22 03:30:59.569169+00', '2025-01-22 03:30:59.569576+00', 0.000407, 0, true, 0, '{"sample_s": 0.000152, "environment_s": 0.000145}', 'click(81,29)', NULL, NULL, '2025-01-22 03:30:59.569655+00');
INSERT INTO cua.turn VALUES ('32fa547f-cb72-545e-a7cd-83f7398f03e8', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 1, '2025-01-22 03:30:59.593087+00', '2025-01-22 03:30:59.593673+00', 0.000586, 0, false, 0, '{"sample_s": 0.000361, "environment_s": 0.000173}', 'swipe(right)', NULL, NULL, '2025-01-22 03:30:59.593794+00');
INSERT INTO cua.turn VALUES ('4ff51f3a-fc3c-5311-991d-fa5081cfbefa', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 2, '2025-01-22 03:30:59.59385+00', '2025-01-22 03:30:59.597257+00', 0.003407, 0, false, 0, '{"sample_s": 0.000309, "environment_s": 0.003038}', 'click(37,85)', NULL, NULL, '2025-01-22 03:30:59.597417+00');
INSERT INTO cua.turn VALUES ('2b964ea7-08c8-50ed-ba98-82f2456690ae', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 3, '2025-01-22 03:30:59.597516+00', '2025-01-22 03:30:59.608541+00', 0.011025, 0, false, 0, '{"sample_s": 0.000459, "environment_s": 0.003005}', 'click(50,77)', NULL, NULL, '2025-01-22 03:30:59.608814+00');
INSERT INTO cua.turn VALUES ('d634cb6e-62af-5505-bfb1-5598fc451fe9', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 4, '2025-01-22 03:30:59.608925+00', '2025-01-22 03:30:59.609249+00', 0.000324, 0, true, 0, '{"sample_s": 0.00023, "environment_s": 0.000001}', 'terminate(success)', NULL, NULL, '2025-01-22 03:30:59.609317+00');
INSERT INTO cua.turn VALUES ('43dbc90d-cfe0-5b01-9332-1f3ee51d8c87', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 1, '2025-01-22 03:30:59.61221+00', '2025-01-22 03:30:59.616044+00', 0.003834, 0, false, 0, '{"sample_s": 0.00023, "environment_s": 0.000093}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.616155+00');
INSERT INTO cua.turn VALUES ('965370b0-55be-580c-b836-0809c0067017', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 2, '2025-01-22 03:30:59.616218+00', '2025-01-22 03:30:59.628045+00', 0.011827, 0, false, 0, '{"sample_s": 0.000237, "environment_s": 0.009245}', 'click(58,83)', NULL, NULL, '2025-01-22 03:30:59.62825+00');
INSERT INTO cua.turn VALUES ('5fb7fcae-7c12-50e3-b868-e248fe6ebedc', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 3, '2025-01-22 03:30:59.628366+00', '2025-01-22 03:30:59.628841+00', 0.000475, 0, false, 0, '{"sample_s": 0.000297, "environment_s": 0.000127}', 'click(48,74)', NULL, NULL, '2025-01-22 03:30:59.628905+00');
INSERT INTO cua.turn VALUES ('b2d2da9a-4dcc-5727-9a6b-3562a0867f3d', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 4, '2025-01-22 03:30:59.628943+00', '2025-01-22 03:30:59.629332+00', 0.000389, 0, false, 0, '{"sample_s": 0.000251, "environment_s": 0.00011}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.629389+00');
INSERT INTO cua.turn VALUES ('df30ed11-1eb7-51a1-b3df-64bd900a78ed', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 5, '2025-01-22 03:30:59.629424+00', '2025-01-22 03:30:59.629892+00', 0.000468, 0, true, 0, '{"sample_s": 0.000228, "environment_s": 0.000204}', 'click(37,85)', NULL, NULL, '2025-01-22 03:30:59.629953+00');
INSERT INTO cua.turn VALUES ('57c34461-d4da-58a8-95f6-a05785208eb4', '53b9bec9-6400-5533-9b41-982935794d5a', 1, '2025-01-22 03:30:59.676308+00', '2025-01-22 03:30:59.680039+00', 0.003731, 0, false, 0, '{"sample_s": 0.000342, "environment_s": 0.000202}', 'swipe(right)', NULL, NULL, '2025-01-22 03:30:59.680189+00');
INSERT INTO cua.turn VALUES ('cbe747df-296a-5a9e-917b-064e1a19851e', '53b9bec9-6400-5533-9b41-982935794d5a', 2, '2025-01-22 03:30:59.680269+00', '2025-01-22 03:30:59.688062+00', 0.007793, 0, false, 0, '{"sample_s": 0.000242, "environment_s": 0.002881}', 'click(87,85)', NULL, NULL, '2025-01-22 03:30:59.688262+00');
INSERT INTO cua.turn VALUES ('5a1698e7-fadc-5e67-9deb-67b0fd082803', '53b9bec9-6400-5533-9b41-982935794d5a', 3, '2025-01-22 03:30:59.688379+00', '2025-01-22 03:30:59.688886+00', 0.000507, 0, false, 0, '{"sample_s": 0.000343, "environment_s": 0.000122}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.688955+00');
INSERT INTO cua.turn VALUES ('74d88570-cba9-58b8-8371-6a47cc4e84b8', '53b9bec9-6400-5533-9b41-982935794d5a', 4, '2025-01-22 03:30:59.688992+00', '2025-01-22 03:30:59.705033+00', 0.016041, 0, false, 0, '{"sample_s": 0.000194, "environment_s": 0.015767}', 'click(93,51)', NULL, NULL, '2025-01-22 03:30:59.705244+00');
INSERT INTO cua.turn VALUES ('2f9438b0-afc9-5594-8640-c01fc4e0ef3b', '53b9bec9-6400-5533-9b41-982935794d5a', 5, '2025-01-22 03:30:59.705369+00', '2025-01-22 03:30:59.705888+00', 0.000519, 0, false, 0, '{"sample_s": 0.000342, "environment_s": 0.00012}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.705955+00');
INSERT INTO cua.turn VALUES ('02ed438e-332b-508a-b31d-aa4ffcce381f', '53b9bec9-6400-5533-9b41-982935794d5a', 6, '2025-01-22 03:30:59.705994+00', '2025-01-22 03:30:59.720666+00', 0.014672, 0, false, 0, '{"sample_s": 0.000199, "environment_s": 0.014328}', 'click(36,64)', NULL, NULL, '2025-01-22 03:30:59.720818+00');
INSERT INTO cua.turn VALUES ('745f257f-9de9-5f36-852c-43824e63d6ad', '53b9bec9-6400-5533-9b41-982935794d5a', 7, '2025-01-22 03:30:59.720914+00', '2025-01-22 03:30:59.724047+00', 0.003133, 0, false, 0, '{"sample_s": 0.000274, "environment_s": 0.000152}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.724183+00');
INSERT INTO cua.turn VALUES ('e292e8b4-f103-5831-88b9-73f1609fafa4', '53b9bec9-6400-5533-9b41-982935794d5a', 8, '2025-01-22 03:30:59.724261+00', '2025-01-22 03:30:59.735425+00', 0.011164, 0, true, 0, '{"sample_s": 0.000272, "environment_s": 0.006731}', 'click(48,84)', NULL, NULL, '2025-01-22 03:30:59.735709+00');
INSERT INTO cua.turn VALUES ('3d1db10e-fc02-5f7c-9eeb-46242828c4d7', 'b9f769d0-5386-5b75-8ada-91e523774a26', 1, '2025-01-22 03:30:59.757262+00', '2025-01-22 03:30:59.757776+00', 0.000514, 0, false, 0, '{"sample_s": 0.000274, "environment_s": 0.000172}', 'click(5,10)', NULL, NULL, '2025-01-22 03:30:59.757866+00');
INSERT INTO cua.turn VALUES ('7fa2d177-bcb4-55d5-a40b-438a257c8f94', 'b9f769d0-5386-5b75-8ada-91e523774a26', 2, '2025-01-22 03:30:59.75792+00', '2025-01-22 03:30:59.75845+00', 0.00053, 0, false, 0, '{"sample_s": 0.000249, "environment_s": 0.000219}', 'click(87,85)', NULL, NULL, '2025-01-22 03:30:59.758519+00');
INSERT INTO cua.turn VALUES ('87d6b461-ceda-52c3-82f9-b8bf430c770b', 'b9f769d0-5386-5b75-8ada-91e523774a26', 3, '2025-01-22 03:30:59.758558+00', '2025-01-22 03:30:59.759278+00', 0.00072, 0, false, 0, '{"sample_s": 0.00024, "environment_s": 0.000129}', 'wait()', NULL, NULL, '2025-01-22 03:30:59.759359+00');
INSERT INTO cua.turn VALUES ('08e93e1d-0dec-5d83-8e12-2ac535335324', 'b9f769d0-5386-5b75-8ada-91e523774a26', 4, '2025-01-22 03:30:59.759403+00', '2025-01-22 03:30:59.764107+00', 0.004704, 0, false, 0, '{"sample_s": 0.00021, "environment_s": 0.000215}', 'swipe(left)', NULL, NULL, '2025-01-22 03:30:59.764314+00');
INSERT INTO cua.turn VALUES ('09899171-63fc-5b8c-9082-ee145f83c226', 'b9f769d0-5386-5b75-8ada-91e523774a26', 5, '2025-01-22 03:30:59.764437+00', '2025-01-22 03:30:59.766836+00', 0.002399, 0, false, 0, '{"sample_s": 0.00034, "environment_s": 0.000259}', 'click(31,93)', NULL, NULL, '2025-01-22 03:30:59.76702+00');
INSERT INTO cua.turn VALUES ('611ce53d-ba50-5033-9396-bf0b9a94ea46', 'b9f769d0-5386-5b75-8ada-91e523774a26', 6, '2025-01-22 03:30:59.767081+00', '2025-01-22 03:30:59.77245+00', 0.005369, 0, false, 0, '{"sample_s": 0.000358, "environment_s": 0.000217}', 'click(16,96)', NULL, NULL, '2025-01-22 03:30:59.772565+00');
INSERT INTO cua.turn VALUES ('a0af39df-4030-5e48-b63a-8c3cdc586454', 'b9f769d0-5386-5b75-8ada-91e523774a26', 7, '2025-01-22 03:30:59.772638+00', '2025-01-22 03:30:59.77324+00', 0.000602, 0, false, 0, '{"sample_s": 0.000232, "environment_s": 0.000253}', 'click(87,85)', NULL, NULL, '2025-01-22 03:30:59.773318+00');
INSERT INTO cua.turn VALUES ('3b737a54-be83-5d22-b620-04ac02bff22e', 'b9f769d0-5386-5b75-8ada-91e523774a26', 8, '2025-01-22 03:30:59.773361+00', '2025-01-22 03:30:59.808098+00', 0.034737, 0, true, 0, '{"sample_s": 0.000204, "environment_s": 0.032806}', 'click(50,77)', NULL, NULL, '2025-01-22 03:30:59.808307+00');
INSERT INTO cua.turn VALUES ('44fcdde7-5761-5be4-ae55-c61e11ee4516', '79d60687-f5e7-5984-bc4b-bbeed4908886', 1, '2025-01-22 03:30:59.880213+00', '2025-01-22 03:30:59.888744+00', 0.008531, 0, false, 1, '{"sample_s": 0.000305, "environment_s": 0.008152}', 'click(62,67)', NULL, NULL, '2025-01-22 03:30:59.888929+00');
INSERT INTO cua.turn VALUES ('4176c380-9fc2-5615-8242-bd57557af166', '79d60687-f5e7-5984-bc4b-bbeed4908886', 2, '2025-01-22 03:30:59.889033+00', '2025-01-22 03:30:59.889486+00', 0.000453, 0, false, 1, '{"sample_s": 0.000251, "environment_s": 0.000114}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.889552+00');
INSERT INTO cua.turn VALUES ('1018bfed-b9d7-5d23-b01f-a754157058bc', '79d60687-f5e7-5984-bc4b-bbeed4908886', 3, '2025-01-22 03:30:59.889591+00', '2025-01-22 03:30:59.88989+00', 0.000299, 0, false, 1, '{"sample_s": 0.000179, "environment_s": 0.000085}', 'button(back)', NULL, NULL, '2025-01-22 03:30:59.889955+00');
INSERT INTO cua.turn VALUES ('3fea3ea9-a4db-5da0-b89b-6c3c13a254d9', '79d60687-f5e7-5984-bc4b-bbeed4908886', 4, '2025-01-22 03:30:59.889986+00', '2025-01-22 03:30:59.901334+00', 0.011348, 0, false, 1, '{"sample_s": 0.000174, "environment_s": 0.01112}', 'click(37,85)', NULL, NULL, '2025-01-22 03:30:59.901498+00');
INSERT INTO cua.turn VALUES ('b95158f8-29a3-552a-bcbb-5a907d16e1e4', '79d60687-f5e7-5984-bc4b-bbeed4908886', 5, '2025-01-22 03:30:59.901599+00', '2025-01-22 03:30:59.902347+00', 0.000748, 0, false, 1, '{"sample_s": 0.000472, "environment_s": 0.000111}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.902422+00');
INSERT INTO cua.turn VALUES ('a8581d56-26c0-5e27-a138-0ab67fe23467', '79d60687-f5e7-5984-bc4b-bbeed4908886', 6, '2025-01-22 03:30:59.902465+00', '2025-01-22 03:30:59.912664+00', 0.010199, 0, false, 1, '{"sample_s": 0.000202, "environment_s": 0.009942}', 'click(55,85)', NULL, NULL, '2025-01-22 03:30:59.912792+00');
INSERT INTO cua.turn VALUES ('c3572634-dc7f-5bee-9d5a-57cd14f944ea', '79d60687-f5e7-5984-bc4b-bbeed4908886', 7, '2025-01-22 03:30:59.912865+00', '2025-01-22 03:30:59.915868+00', 0.003003, 0, false, 1, '{"sample_s": 0.000297, "environment_s": 0.002596}', 'click(11,46)', NULL, NULL, '2025-01-22 03:30:59.915994+00');
INSERT INTO cua.turn VALUES ('d9c03364-0ef4-541c-b4ec-b36af16b2cde', '79d60687-f5e7-5984-bc4b-bbeed4908886', 8, '2025-01-22 03:30:59.916054+00', '2025-01-22 03:30:59.91651+00', 0.000456, 0, true, 1, '{"sample_s": 0.000316, "environment_s": 0.000108}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.916574+00');
INSERT INTO cua.turn VALUES ('955c8ad7-aa43-5ad7-8fa4-37b937d2f596', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 1, '2025-01-22 03:30:59.917748+00', '2025-01-22 03:30:59.922619+00', 0.004871, 0, false, 1, '{"sample_s": 0.000192, "environment_s": 0.004573}', 'click(37,38)', NULL, NULL, '2025-01-22 03:30:59.922714+00');
INSERT INTO cua.turn VALUES ('12bd0664-f1e3-53da-82eb-b7d9121ee380', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 2, '2025-01-22 03:30:59.922774+00', '2025-01-22 03:30:59.92306+00', 0.000286, 0, false, 1, '{"sample_s": 0.000166, "environment_s": 0.000091}', 'button(home)', NULL, NULL, '2025-01-22 03:30:59.92312+00');
INSERT INTO cua.turn VALUES ('2ab49495-1c18-5fda-aedb-2fc696534d83', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 3, '2025-01-22 03:30:59.923154+00', '2025-01-22 03:30:59.929928+00', 0.006774, 0, false, 1, '{"sample_s": 0.000175, "environment_s": 0.006505}', 'click(87,38)', NULL, NULL, '2025-01-22 03:30:59.930047+00');
INSERT INTO cua.turn VALUES ('f5073023-aa47-51ce-b594-888b9e08213e', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 4, '2025-01-22 03:30:59.930117+00', '2025-01-22 03:30:59.93044+00', 0.000323, 0, false, 1, '{"sample_s": 0.00015, "environment_s": 0.000142}', 'click(50,96)', NULL, NULL, '2025-01-22 03:30:59.930501+00');
INSERT INTO cua.turn VALUES ('837b7623-41b2-50bb-b299-8413d5f453c5', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 5, '2025-01-22 03:30:59.930535+00', '2025-01-22 03:30:59.964036+00', 0.033501, 0, false, 1, '{"sample_s": 0.000167, "environment_s": 0.030415}', 'click(62,23)', NULL, NULL, '2025-01-22 03:30:59.964332+00');
INSERT INTO cua.turn VALUES ('8d4886f3-9f02-5f60-95a3-51412b58a279', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 6, '2025-01-22 03:30:59.964449+00', '2025-01-22 03:30:59.965508+00', 0.001059, 0, false, 1, '{"sample_s": 0.000223, "environment_s": 0.000167}', 'click(50,96)', NULL, NULL, '2025-01-22 03:30:59.965629+00');
INSERT INTO cua.turn VALUES ('f5af0402-8c3f-57e0-b73a-ff378fe38b93', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 7, '2025-01-22 03:30:59.965678+00', '2025-01-22 03:30:59.972716+00', 0.007038, 0, false, 1, '{"sample_s": 0.000197, "environment_s": 0.006793}', 'swipe(up)', NULL, NULL, '2025-01-22 03:30:59.972839+00');
INSERT INTO cua.turn VALUES ('c95766d4-ccb4-5b08-a1b9-4336925ed8e2', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 8, '2025-01-22 03:30:59.97291+00', '2025-01-22 03:30:59.973511+00', 0.000601, 0, true, 1, '{"sample_s": 0.000326, "environment_s": 0.000245}', 'swipe(left)', NULL, NULL, '2025-01-22 03:30:59.973581+00');


--
-- Data for Name: validation; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.validation VALUES ('f6f874f8-b6ba-56d8-8770-66a24e32773f', 'rollout/6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', '6a8f26a6-6a86-5ffd-b129-6d53172e1dc5', 'ecb65782-87c0-5ff3-a26e-6a625d115d16', 0, '2025-01-22 03:30:59.492124+00', 'current_app', 'com.android.settings', 'com.android.settings', true, 0.006360889000461611, NULL, '{"commands": ["dumpsys window"]}', '2025-01-22 03:30:59.49216+00');
INSERT INTO cua.validation VALUES ('7d691422-a562-50cd-abc6-90f62f466665', 'rollout/a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'a3edd95a-6bf3-5b4d-ae13-631a8a603e9d', 'a562dfbf-cd85-560d-bc50-7daa09f6ff76', 0, '2025-01-22 03:30:59.570262+00', 'wifi_enabled', 'True', 'False', false, 0.0005452679997688392, NULL, '{"commands": ["settings get global wifi_on"]}', '2025-01-22 03:30:59.5703+00');
INSERT INTO cua.validation VALUES ('72a19ff7-1386-5dfe-a897-341ce22117b6', 'rollout/e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'e4dbe5f7-a949-5934-a0c6-ce17add632fd', 'ecb65782-87c0-5ff3-a26e-6a625d115d16', 0, '2025-01-22 03:30:59.609538+00', 'current_app', 'com.android.settings', 'com.android.settings', true, 0.00015278699993359623, NULL, '{"commands": ["dumpsys window"]}', '2025-01-22 03:30:59.609577+00');
INSERT INTO cua.validation VALUES ('ca5f7015-5066-55ef-a8ef-06e0964b4305', 'rollout/9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', '9086fa8b-1e9a-59ca-a8fe-7cf55fb4266f', 'ecb65782-87c0-5ff3-a26e-6a625d115d16', 0, '2025-01-22 03:30:59.632101+00', 'current_app', 'com.android.settings', 'com.android.settings', true, 0.002098711000144249, NULL, '{"commands": ["dumpsys window"]}', '2025-01-22 03:30:59.632138+00');
INSERT INTO cua.validation VALUES ('68dd4129-d9f8-565a-ad85-878cce8bccac', 'rollout/53b9bec9-6400-5533-9b41-982935794d5a', '53b9bec9-6400-5533-9b41-982935794d5a', 'a562dfbf-cd85-560d-bc50-7daa09f6ff76', 0, '2025-01-22 03:30:59.736178+00', 'wifi_enabled', 'True', 'False', false, 0.0003395429994270671, NULL, '{"commands": ["settings get global wifi_on"]}', '2025-01-22 03:30:59.736223+00');
INSERT INTO cua.validation VALUES ('25443225-4d63-5477-82a0-343561c11cbe', 'rollout/b9f769d0-5386-5b75-8ada-91e523774a26', 'b9f769d0-5386-5b75-8ada-91e523774a26', 'a562dfbf-cd85-560d-bc50-7daa09f6ff76', 0, '2025-01-22 03:30:59.808549+00', 'wifi_enabled', 'True', 'False', false, 0.00010936199942079838, NULL, '{"commands": ["settings get global wifi_on"]}', '2025-01-22 03:30:59.808573+00');
INSERT INTO cua.validation VALUES ('7e095bcd-bae9-5581-9f26-ec9c5d77f834', 'rollout/79d60687-f5e7-5984-bc4b-bbeed4908886', '79d60687-f5e7-5984-bc4b-bbeed4908886', 'a562dfbf-cd85-560d-bc50-7daa09f6ff76', 0, '2025-01-22 03:30:59.916689+00', 'wifi_enabled', 'True', 'False', false, 5.884700021852041e-05, NULL, '{"commands": ["settings get global wifi_on"]}', '2025-01-22 03:30:59.916708+00');
INSERT INTO cua.validation VALUES ('6538adf7-2c9e-5abd-a267-c39ccbf7164f', 'rollout/0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', '0cd94e18-dec2-5a0f-b35b-3f72d3fd2c2f', 'a562dfbf-cd85-560d-bc50-7daa09f6ff76', 0, '2025-01-22 03:30:59.973726+00', 'wifi_enabled', 'True', 'False', false, 8.781099950283533e-05, NULL, '{"commands": ["settings get global wifi_on"]}', '2025-01-22 03:30:59.973747+00');


--
-- Data for Name: validator; Type: TABLE DATA; Schema: cua; Owner: -
--

INSERT INTO cua.validator VALUES ('a562dfbf-cd85-560d-bc50-7daa09f6ff76', '634bb348-92ae-57f9-a9e9-4e2113b5cfce', 'shell', 'wifi_enabled', 'equals', '{"setup": ["settings put global wifi_on 0"], "parameters": {}, "expected_result": "True"}', '2025-01-22 03:30:59.310855+00');
INSERT INTO cua.validator VALUES ('ecb65782-87c0-5ff3-a26e-6a625d115d16', '2559f7d3-1720-58a4-8a52-a0c99e5184fb', 'shell', 'current_app', 'equals', '{"setup": [], "parameters": {}, "expected_result": "com.android.settings"}', '2025-01-22 03:30:59.310718+00');


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: cua_ops; Owner: -
--

INSERT INTO cua_ops.alembic_version VALUES ('0001');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: cua_ops; Owner: -
--



--
-- Data for Name: operator_drop; Type: TABLE DATA; Schema: cua_ops; Owner: -
--



--
-- Name: operator_drop_id_seq; Type: SEQUENCE SET; Schema: cua_ops; Owner: -
--

SELECT pg_catalog.setval('cua_ops.operator_drop_id_seq', 1, false);


--
-- Name: action pk_action; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.action
    ADD CONSTRAINT pk_action PRIMARY KEY (id);


--
-- Name: baseline pk_baseline; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.baseline
    ADD CONSTRAINT pk_baseline PRIMARY KEY (id);


--
-- Name: environment pk_environment; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.environment
    ADD CONSTRAINT pk_environment PRIMARY KEY (id);


--
-- Name: eval pk_eval; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.eval
    ADD CONSTRAINT pk_eval PRIMARY KEY (id);


--
-- Name: group pk_group; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua."group"
    ADD CONSTRAINT pk_group PRIMARY KEY (id);


--
-- Name: held_record pk_held_record; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.held_record
    ADD CONSTRAINT pk_held_record PRIMARY KEY (log_id, topic, partition, log_offset);


--
-- Name: obs pk_obs; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.obs
    ADD CONSTRAINT pk_obs PRIMARY KEY (id);


--
-- Name: projection pk_projection; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.projection
    ADD CONSTRAINT pk_projection PRIMARY KEY (one);


--
-- Name: reader_position pk_reader_position; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.reader_position
    ADD CONSTRAINT pk_reader_position PRIMARY KEY (topic, partition);


--
-- Name: rollout pk_rollout; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.rollout
    ADD CONSTRAINT pk_rollout PRIMARY KEY (id);


--
-- Name: sample pk_sample; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.sample
    ADD CONSTRAINT pk_sample PRIMARY KEY (id);


--
-- Name: status_history pk_status_history; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.status_history
    ADD CONSTRAINT pk_status_history PRIMARY KEY (id);


--
-- Name: step pk_step; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.step
    ADD CONSTRAINT pk_step PRIMARY KEY (id);


--
-- Name: stream_position pk_stream_position; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.stream_position
    ADD CONSTRAINT pk_stream_position PRIMARY KEY (stream);


--
-- Name: task pk_task; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.task
    ADD CONSTRAINT pk_task PRIMARY KEY (id);


--
-- Name: training pk_training; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.training
    ADD CONSTRAINT pk_training PRIMARY KEY (id);


--
-- Name: turn pk_turn; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.turn
    ADD CONSTRAINT pk_turn PRIMARY KEY (id);


--
-- Name: validation pk_validation; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.validation
    ADD CONSTRAINT pk_validation PRIMARY KEY (id);


--
-- Name: validator pk_validator; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.validator
    ADD CONSTRAINT pk_validator PRIMARY KEY (id);


--
-- Name: action uq_action_turn_id_action_index; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.action
    ADD CONSTRAINT uq_action_turn_id_action_index UNIQUE (turn_id, action_index);


--
-- Name: obs uq_obs_turn_id_obs_type; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.obs
    ADD CONSTRAINT uq_obs_turn_id_obs_type UNIQUE (turn_id, obs_type);


--
-- Name: rollout uq_rollout_rollout_id; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.rollout
    ADD CONSTRAINT uq_rollout_rollout_id UNIQUE (rollout_id);


--
-- Name: sample uq_sample_step_id_rollout_id; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.sample
    ADD CONSTRAINT uq_sample_step_id_rollout_id UNIQUE (step_id, rollout_id);


--
-- Name: status_history uq_status_history_entity_type_entity_id_epoch_sequence; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.status_history
    ADD CONSTRAINT uq_status_history_entity_type_entity_id_epoch_sequence UNIQUE (entity_type, entity_id, epoch, sequence);


--
-- Name: step uq_step_training_id_generation_step; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.step
    ADD CONSTRAINT uq_step_training_id_generation_step UNIQUE (training_id, generation, step);


--
-- Name: task uq_task_task_id_definition_hash; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.task
    ADD CONSTRAINT uq_task_task_id_definition_hash UNIQUE (task_id, definition_hash);


--
-- Name: training uq_training_run_name; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.training
    ADD CONSTRAINT uq_training_run_name UNIQUE (run_name);


--
-- Name: turn uq_turn_rollout_id_turn; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.turn
    ADD CONSTRAINT uq_turn_rollout_id_turn UNIQUE (rollout_id, turn);


--
-- Name: validation uq_validation_stream_validator_id; Type: CONSTRAINT; Schema: cua; Owner: -
--

ALTER TABLE ONLY cua.validation
    ADD CONSTRAINT uq_validation_stream_validator_id UNIQUE (stream, validator_id);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: cua_ops; Owner: -
--

ALTER TABLE ONLY cua_ops.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: lease pk_lease; Type: CONSTRAINT; Schema: cua_ops; Owner: -
--

ALTER TABLE ONLY cua_ops.lease
    ADD CONSTRAINT pk_lease PRIMARY KEY (name);


--
-- Name: operator_drop pk_operator_drop; Type: CONSTRAINT; Schema: cua_ops; Owner: -
--

ALTER TABLE ONLY cua_ops.operator_drop
    ADD CONSTRAINT pk_operator_drop PRIMARY KEY (id);


--
-- Name: ix_baseline_training_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_baseline_training_id ON cua.baseline USING btree (training_id);


--
-- Name: ix_eval_training_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_eval_training_id ON cua.eval USING btree (training_id);


--
-- Name: ix_held_record_held_as; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_held_record_held_as ON cua.held_record USING btree (held_as);


--
-- Name: ix_held_record_stream; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_held_record_stream ON cua.held_record USING btree (stream);


--
-- Name: ix_rollout_baseline_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_rollout_baseline_id ON cua.rollout USING btree (baseline_id) WHERE (baseline_id IS NOT NULL);


--
-- Name: ix_rollout_eval_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_rollout_eval_id ON cua.rollout USING btree (eval_id) WHERE (eval_id IS NOT NULL);


--
-- Name: ix_rollout_group_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_rollout_group_id ON cua.rollout USING btree (group_id);


--
-- Name: ix_rollout_step_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_rollout_step_id ON cua.rollout USING btree (step_id) WHERE (step_id IS NOT NULL);


--
-- Name: ix_rollout_task_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_rollout_task_id ON cua.rollout USING btree (task_id);


--
-- Name: ix_sample_group_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_sample_group_id ON cua.sample USING btree (group_id);


--
-- Name: ix_sample_rollout_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_sample_rollout_id ON cua.sample USING btree (rollout_id);


--
-- Name: ix_stream_position_parked; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_stream_position_parked ON cua.stream_position USING btree (stream) WHERE (parked_since IS NOT NULL);


--
-- Name: ix_stream_position_waiting; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_stream_position_waiting ON cua.stream_position USING btree (stream) WHERE (num_waiting > 0);


--
-- Name: ix_validation_rollout_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_validation_rollout_id ON cua.validation USING btree (rollout_id);


--
-- Name: ix_validator_task_id; Type: INDEX; Schema: cua; Owner: -
--

CREATE INDEX ix_validator_task_id ON cua.validator USING btree (task_id);


--
-- Name: uq_eval_scheduled; Type: INDEX; Schema: cua; Owner: -
--

CREATE UNIQUE INDEX uq_eval_scheduled ON cua.eval USING btree (training_id, generation, step) WHERE (kind = 'scheduled'::text);


--
-- Name: uq_group_baseline_id_group_num; Type: INDEX; Schema: cua; Owner: -
--

CREATE UNIQUE INDEX uq_group_baseline_id_group_num ON cua."group" USING btree (baseline_id, group_num);


--
-- Name: uq_group_eval_id_group_num; Type: INDEX; Schema: cua; Owner: -
--

CREATE UNIQUE INDEX uq_group_eval_id_group_num ON cua."group" USING btree (eval_id, group_num);


--
-- Name: uq_group_step_id_group_num; Type: INDEX; Schema: cua; Owner: -
--

CREATE UNIQUE INDEX uq_group_step_id_group_num ON cua."group" USING btree (step_id, group_num);


--
-- Name: ix_operator_drop_value_sha256; Type: INDEX; Schema: cua_ops; Owner: -
--

CREATE INDEX ix_operator_drop_value_sha256 ON cua_ops.operator_drop USING btree (value_sha256);


--
-- PostgreSQL database dump complete
--


