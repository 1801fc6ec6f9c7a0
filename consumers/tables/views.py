"""Views for people, in the schema of the tables they read: names, outcomes, decoded tokens.

A view selects from a function of ours, whose text PostgreSQL reads when it is called: so no view
blocks altering or dropping a table, and a schema may be renamed. The planner puts
the text in place of the call, so that conditions and limits reach the tables' indexes. Who may read
the tables may read the views. They hold nothing: verify and rebuild compare tables only.
"""

from consumers.tables.group_view import ROLLOUT_GROUP
from consumers.tables.rollout_place import PLACE, PLACE_COLUMNS, PLACE_JOINS
from consumers.tables.sql_agent_views import SQL_AGENT_VIEWS
from consumers.tables.view import Column, Function, View

_LITTLE_ENDIAN = " | ".join(
    f"(get_byte(bytes, 4 * i + {place}) << {8 * place})" for place in range(4)
)
_NUMBERS = (
    f"SELECT i, {_LITTLE_ENDIAN} AS bits FROM (SELECT decode($1, 'base64') AS bytes) AS raw,"
    " generate_series(0, length(bytes) / 4 - 1) AS i"
)
# An IEEE 754 single: sign, eight bits of exponent, 23 of fraction. A double holds each exactly.
_FLOAT32 = """CASE
        WHEN (bits >> 23) & 255 = 255 AND bits & 8388607 <> 0 THEN 'NaN'::float8
        WHEN (bits >> 23) & 255 = 255 THEN 'Infinity'::float8
        WHEN (bits >> 23) & 255 = 0 THEN (bits & 8388607) * power(2::float8, -149)
        ELSE ((bits & 8388607) + 8388608) * power(2::float8, ((bits >> 23) & 255) - 150)
    END * CASE WHEN bits < 0 THEN -1::float8 ELSE 1 END"""

DECODERS: tuple[Function, ...] = (
    Function(
        "decode_int32",
        "text",
        "integer[]",
        "IMMUTABLE STRICT PARALLEL SAFE",
        "Token ids from base64 of little-endian int32.",
        f"SELECT coalesce(array_agg(bits ORDER BY i), '{{}}') FROM ({_NUMBERS}) AS numbers",
    ),
    Function(
        "decode_float32",
        "text",
        "real[]",
        "IMMUTABLE STRICT PARALLEL SAFE",
        "Log-probabilities from base64 of little-endian float32.",
        f"SELECT coalesce(array_agg(({_FLOAT32})::real ORDER BY i), '{{}}') FROM ({_NUMBERS}) AS"
        " numbers",
    ),
)

_ROLLOUT_SUMMARY = (
    """
SELECT rollout.rollout_id, training.run_name, task.task_id, task.name, """
    + PLACE
    + """,
    rollout.group_num, rollout.env_index, rollout.attempt, rollout.status,
    CASE
        WHEN rollout.status <> 'completed' THEN rollout.status
        WHEN rollout.task_success THEN 'solved'
        WHEN rollout.ran_out_of_turns THEN 'out_of_turns'
        ELSE 'not_solved'
    END,
    verdict.success, rollout.reward, sample.advantage, sample.used, rollout.num_turns,
    rollout.num_tokens, rollout.policy_version, rollout.error_type, rollout.error_message,
    rollout.created_at, rollout.end_time, rollout.id, rollout.training_id, rollout.group_id
FROM "{schema}".rollout"""
    + PLACE_JOINS
    + """
LEFT JOIN "{schema}".sample
    ON sample.step_id = rollout.step_id AND sample.rollout_id = rollout.id
LEFT JOIN LATERAL (
    SELECT success FROM "{schema}".validation WHERE validation.rollout_id = rollout.id
    ORDER BY rank DESC, validation_time DESC, id LIMIT 1
) AS verdict ON true"""
)

_TURN_TOKENS = """
SELECT rollout.rollout_id, training.run_name, turn.turn, turn.model_response,
    "{schema}".decode_int32(action.tokens), "{schema}".decode_float32(action.logprobs),
    turn.num_tokens, turn.stop_reason, turn.reward, turn.policy_version, turn.start_time,
    turn.turn_time, turn.id, turn.rollout_id
FROM "{schema}".turn
LEFT JOIN "{schema}".rollout ON rollout.id = turn.rollout_id
LEFT JOIN "{schema}".training ON training.id = rollout.training_id
LEFT JOIN "{schema}".action ON action.turn_id = turn.id AND action.action_index = 0"""

VIEWS: tuple[View, ...] = (
    View(
        "rollout_summary",
        "Every rollout with the names of its training and task, what came of it and its use.",
        (
            Column("rollout_id", "text", "The text id: `demo/g0/step-3/group-2/env-1/attempt-0`."),
            Column("run_name", "text", "Name of its training; NULL: none, or not projected yet."),
            Column("task_id", "text", "The task's name: `train_02_enable_wifi`."),
            Column("task_name", "text", "The task's title."),
            *PLACE_COLUMNS,
            Column("group_num", "integer", "Index of its group, from 0."),
            Column("env_index", "integer", "Place in the group, from 0."),
            Column("attempt", "integer", "From 0."),
            Column("status", "text", "As in `rollout`."),
            Column(
                "outcome",
                "text",
                "solved, out_of_turns, not_solved; else its status.",
            ),
            Column(
                "verdict",
                "boolean",
                "Of the validation with the highest rank.",
            ),
            Column("reward", "double precision", "NULL: not scored."),
            Column("advantage", "double precision", "In the step that could train on it."),
            Column("used", "boolean", "NULL: nothing was decided."),
            Column("num_turns", "integer", "Turns taken in all."),
            Column("num_tokens", "bigint", "Completion tokens of all turns."),
            Column("policy_version", "integer", "Of the policy that sampled its first turn."),
            Column("error_type", "text", "The boundary that a failed attempt crossed."),
            Column("error_message", "text", "Why it failed."),
            Column("created_at", "timestamptz", "Time of the event that created it."),
            Column("end_time", "timestamptz", "When it ended; NULL: it has not."),
            Column("id", "uuid", "Row id of the rollout."),
            Column("training_id", "uuid", "Row id of its training."),
            Column("group_id", "uuid", "Row id of its group."),
        ),
        _ROLLOUT_SUMMARY,
    ),
    View(
        "turn_tokens",
        "Every turn with its completion's tokens and log-probabilities as arrays.",
        (
            Column("rollout_id", "text", "The rollout's text id."),
            Column("run_name", "text", "Name of its training."),
            Column("turn", "integer", "From 1."),
            Column("model_response", "text", "The completion as text."),
            Column(
                "tokens",
                "integer[]",
                "NULL: a scripted policy, or no action.",
            ),
            Column("logprobs", "real[]", "Of each token under the behaviour policy, nats."),
            Column("num_tokens", "integer", "Length of both arrays."),
            Column("stop_reason", "text", "stop, length."),
            Column("reward", "double precision", "Of this turn."),
            Column("policy_version", "integer", "The version that sampled it."),
            Column("start_time", "timestamptz", "When its completion was asked for."),
            Column("turn_time", "double precision", "Seconds."),
            Column("id", "uuid", "Row id of the turn."),
            Column("rollout_row_id", "uuid", "Row id of the rollout."),
        ),
        _TURN_TOKENS,
    ),
    ROLLOUT_GROUP,
    *SQL_AGENT_VIEWS,
)
VIEW_NAMES: tuple[str, ...] = tuple(view.name for view in VIEWS)
"""Views that migrate makes in every schema of ours."""


def functions(schema: str) -> tuple[Function, ...]:
    """Every function of a schema whose tables are called by this name."""
    return (
        *DECODERS,
        *(
            Function(
                f"{view.name}_rows",
                "",
                f"TABLE ({', '.join(f'{each.name} {each.type}' for each in view.columns)})",
                "STABLE PARALLEL SAFE",
                f"The rows of the view {view.name}.",
                view.query.format(schema=schema),
            )
            for view in VIEWS
        ),
    )


FUNCTION_SIGNATURES: tuple[str, ...] = tuple(each.signature for each in functions(""))
"""As VIEW_NAMES; users may have functions of the same names that take other arguments."""
