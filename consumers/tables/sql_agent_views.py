"""Views of what SQL agents did: sessions, completions, their SQL, success by skill."""

from consumers.tables.rollout_place import PLACE, PLACE_COLUMNS, PLACE_JOINS
from consumers.tables.view import Column, View

_SESSIONS = (
    """
SELECT rollout.rollout_id, training.run_name, task.task_id, entry.entry_id, entry.skills,
    """
    + PLACE
    + """, session.session_status, session.outcome,
    rollout.reward, session.num_rounds, session.num_operations, session.num_sql_errors,
    session.num_replayed, entry.instruction, entry.sql, session.answer, session.error_message,
    session.end_time, session.id, rollout.training_id, session.entry_id
FROM "{schema}".session
LEFT JOIN "{schema}".entry ON entry.id = session.entry_id
LEFT JOIN "{schema}".rollout ON rollout.id = session.id"""
    + PLACE_JOINS
)
_COMPLETIONS = (
    """
SELECT rollout.rollout_id, training.run_name, task.task_id, entry.entry_id, entry.database,
    entry.difficulty, """
    + PLACE
    + """, completion.outcome, completion.outcome_reward,
    completion.process_reward, rollout.reward, score.scorer, score.product, score.minimum,
    score.last, score.average, completion.sql, entry.sql, completion.error_message,
    completion.execution_time, completion.executed_at, completion.id, rollout.training_id,
    completion.entry_id
FROM "{schema}".completion
LEFT JOIN "{schema}".completion_score AS score ON score.completion_id = completion.id
LEFT JOIN "{schema}".entry ON entry.id = completion.entry_id
LEFT JOIN "{schema}".rollout ON rollout.id = completion.id"""
    + PLACE_JOINS
)
_SQL_TURNS = """
SELECT rollout.rollout_id, training.run_name, turn.turn, action.action_json->>'sql',
    action.error_type, action.error_message, answer.text_content, turn.id, turn.rollout_id
FROM "{schema}".action
JOIN "{schema}".turn ON turn.id = action.turn_id
LEFT JOIN "{schema}".rollout ON rollout.id = turn.rollout_id
LEFT JOIN "{schema}".training ON training.id = rollout.training_id
LEFT JOIN "{schema}".turn AS later
    ON later.rollout_id = turn.rollout_id AND later.turn = turn.turn + 1
LEFT JOIN "{schema}".obs AS answer ON answer.turn_id = later.id AND answer.obs_type = 'text'
WHERE action.action_type = 'execute_sql'"""
_SKILLS = """
SELECT training.run_name, skill_success.generation, skill_success.step,
    CASE WHEN baseline.id IS NULL THEN 'eval' ELSE 'baseline' END,
    coalesce(eval.superseded, baseline.superseded), skill_success.stage,
    skill_success.trained_skill, skill_success.skill, skill_success.num_sessions,
    skill_success.num_correct, skill_success.success_rate, skill_success.measured_at,
    skill_success.training_id, skill_success.evaluation_id
FROM "{schema}".skill_success
LEFT JOIN "{schema}".training ON training.id = skill_success.training_id
LEFT JOIN "{schema}".eval ON eval.id = skill_success.evaluation_id
LEFT JOIN "{schema}".baseline ON baseline.id = skill_success.evaluation_id"""

_NAMES = (
    Column("rollout_id", "text", "The rollout's text id; NULL: not projected yet."),
    Column("run_name", "text", "Name of its training; NULL: none, or not projected yet."),
)

SQL_AGENT_VIEWS: tuple[View, ...] = (
    View(
        "session_summary",
        "Every session with a database: its training, task and skills, how it ended and what it"
        " came to.",
        (
            *_NAMES,
            Column("task_id", "text", "The task's name."),
            Column("entry", "text", "The entry's name in the data set."),
            Column("skills", "jsonb", "List of what the gold needs."),
            *PLACE_COLUMNS,
            Column("session_status", "text", "How it ended; as in `session`."),
            Column("outcome", "text", "What it came to: correct, incorrect, unknown."),
            Column("reward", "double precision", "NULL: not scored."),
            Column("num_rounds", "integer", "Completions of the agent."),
            Column("num_operations", "integer", "SQL texts that were executed."),
            Column("num_sql_errors", "integer", "Of those, refused."),
            Column("num_replayed", "integer", "Past sessions shown in the prompt."),
            Column("instruction", "text", "The question or order."),
            Column("gold", "text", "The gold SQL; NULL: unknown."),
            Column("answer", "text", "The final answer; NULL: there was none."),
            Column("error_message", "text", "What went wrong; NULL: nothing."),
            Column("end_time", "timestamptz", "When it had been judged."),
            Column("id", "uuid", "Row id of the rollout."),
            Column("training_id", "uuid", "Row id of its training."),
            Column("entry_row_id", "uuid", "Row id of the entry."),
        ),
        _SESSIONS,
    ),
    View(
        "completion_summary",
        "Every text-to-SQL completion with its training and entry; of one that several scorers"
        " judged, a row for each.",
        (
            *_NAMES,
            Column("task_id", "text", "The task's name."),
            Column("entry", "text", "The entry's name in the data set."),
            Column("database", "text", "The data set's name of the database."),
            Column("difficulty", "text", "As in the data set; NULL: unrated."),
            *PLACE_COLUMNS,
            Column("outcome", "text", "correct, incorrect, error, no_sql, unknown."),
            Column("outcome_reward", "double precision", "What the outcome is worth."),
            Column("process_reward", "double precision", "Mean of its steps' scores."),
            Column("reward", "double precision", "Of its rollout; NULL: not scored."),
            Column("scorer", "text", "What scored its steps; NULL: they are not scored."),
            Column("product", "double precision", "Product of the steps' scores."),
            Column("minimum", "double precision", "Lowest score of a step."),
            Column("last", "double precision", "Score of the last step."),
            Column("average", "double precision", "Mean of the steps' scores."),
            Column("sql", "text", "Found in the completion; NULL: none."),
            Column("gold", "text", "The gold SQL; NULL: unknown."),
            Column("error_message", "text", "The database's error; NULL: none."),
            Column("execution_time", "double precision", "Seconds; NULL: not executed."),
            Column("executed_at", "timestamptz", "When it had been compared."),
            Column("id", "uuid", "Row id of the rollout."),
            Column("training_id", "uuid", "Row id of its training."),
            Column("entry_row_id", "uuid", "Row id of the entry."),
        ),
        _COMPLETIONS,
    ),
    View(
        "sql_turn",
        "Every SQL text that an agent executed, and the result it got.",
        (
            *_NAMES,
            Column("turn", "integer", "From 1."),
            Column("sql", "text", "As the agent wrote it."),
            Column("error_type", "text", "What was wrong with it; NULL: nothing."),
            Column("error_message", "text", "The database's error; NULL: none."),
            Column("observed", "text", "What the next turn began with; NULL: it has none."),
            Column("id", "uuid", "Row id of the turn."),
            Column("rollout_row_id", "uuid", "Row id of the rollout."),
        ),
        _SQL_TURNS,
    ),
    View(
        "skill_progress",
        "Success by skill after each evaluation, with the training's name.",
        (
            Column("run_name", "text", "Name of the training."),
            Column("generation", "integer", "Generation of the training."),
            Column("step", "integer", "Finished steps; 0: before the first."),
            Column("evaluation", "text", "baseline or eval."),
            Column("superseded", "boolean", "A newer generation evaluates again; NULL: not known."),
            Column("stage", "integer", "Skills trained so far; NULL: not trained in turn."),
            Column("trained_skill", "text", "The skill trained last; NULL: none yet."),
            Column("skill", "text", "Name of the skill; `all`: of every entry once."),
            Column("num_sessions", "integer", "Scored sessions whose entry needs it."),
            Column("num_correct", "integer", "Of those, right ones."),
            Column("success_rate", "double precision", "0-1."),
            Column("measured_at", "timestamptz", "When the evaluation had ended."),
            Column("training_id", "uuid", "Row id of the training."),
            Column("evaluation_id", "uuid", "Row id of the eval or baseline."),
        ),
        _SKILLS,
    ),
)
