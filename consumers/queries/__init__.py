"""Queries for programs and notebooks, named as users of the recipe know them.

    init_database()
    with get_session() as session:
        training = get_training_by_run_name(session, "demo")

Every function takes a session first and only reads. Ids are row ids (UUID), except `task_id` of
get_task_by_task_id and `rollout_id` of get_rollout_by_rollout_id, which are text ids. Without a
generation the newest counts: rows that a newer generation trains again (`superseded`) are omitted.
"""

from consumers.queries.evaluations import (
    get_eval_by_training_and_step,
    list_baselines_by_training,
    list_evals_by_training,
)
from consumers.queries.gains import Gain, Success, gains_by_temperature, list_gains
from consumers.queries.history import get_status_history
from consumers.queries.rollouts import (
    count_leaked_devices,
    get_environment_by_rollout,
    get_rollout_by_rollout_id,
    get_validation_by_rollout,
    list_actions_by_turn,
    list_groups_by_baseline,
    list_groups_by_eval,
    list_groups_by_step,
    list_observations_by_turn,
    list_rollouts_by_baseline,
    list_rollouts_by_eval,
    list_rollouts_by_group,
    list_rollouts_by_step,
    list_rollouts_by_task,
    list_turns_by_rollout,
)
from consumers.queries.scorings import list_scores_by_rollout, list_scorings_by_training
from consumers.queries.session import get_session, init_database
from consumers.queries.skills import SkillMatrix, skill_matrix, success_by_skill
from consumers.queries.sql_agents import (
    ScoredCompletion,
    entry_content,
    get_completion_by_rollout,
    get_entry,
    get_session_by_rollout,
    list_completions,
    list_entries_by_task,
    list_scores_by_completion,
    list_sessions,
)
from consumers.queries.tasks import (
    get_task,
    get_task_by_task_id,
    list_tasks,
    list_validators_by_task,
)
from consumers.queries.trainings import (
    get_annotation,
    get_latest_completed_step,
    get_step_by_training_and_step,
    get_training,
    get_training_by_run_name,
    list_annotations,
    list_steps_by_training,
    list_trainings,
)

__all__ = [
    "Gain",
    "ScoredCompletion",
    "SkillMatrix",
    "Success",
    "count_leaked_devices",
    "entry_content",
    "gains_by_temperature",
    "get_annotation",
    "get_completion_by_rollout",
    "get_entry",
    "get_environment_by_rollout",
    "get_eval_by_training_and_step",
    "get_latest_completed_step",
    "get_rollout_by_rollout_id",
    "get_session",
    "get_session_by_rollout",
    "get_status_history",
    "get_step_by_training_and_step",
    "get_task",
    "get_task_by_task_id",
    "get_training",
    "get_training_by_run_name",
    "get_validation_by_rollout",
    "init_database",
    "list_actions_by_turn",
    "list_annotations",
    "list_baselines_by_training",
    "list_completions",
    "list_entries_by_task",
    "list_evals_by_training",
    "list_gains",
    "list_groups_by_baseline",
    "list_groups_by_eval",
    "list_groups_by_step",
    "list_observations_by_turn",
    "list_rollouts_by_baseline",
    "list_rollouts_by_eval",
    "list_rollouts_by_group",
    "list_rollouts_by_step",
    "list_rollouts_by_task",
    "list_scores_by_completion",
    "list_scores_by_rollout",
    "list_scorings_by_training",
    "list_sessions",
    "list_steps_by_training",
    "list_tasks",
    "list_trainings",
    "list_turns_by_rollout",
    "list_validators_by_task",
    "skill_matrix",
    "success_by_skill",
]
