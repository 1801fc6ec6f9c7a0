"""The start of one small training, event by event, for tests that need something to build on.

Training "demo": one step, one group of two rollouts, one phone. Ids are written out, so that a
test's expected rows do not depend on the code that derives ids.
"""

from datetime import UTC, datetime
from uuid import UUID

from schemas.environment import EnvironmentRequested
from schemas.evaluation import EvaluationCreated
from schemas.group import GroupCreated
from schemas.rollout import RolloutCreated
from schemas.step import StepCreated
from schemas.training import Recipe, TrainingCreated

TRAINING = "c629045c-8bcc-5eff-ba2f-27a7a2978c31"
"""Natural key: run name "demo"."""
STEP = "1dd09c2b-a7d8-5699-b54a-f5e0b57d35d0"
"""Natural key: TRAINING, generation 0, step 1."""
GROUP = "a2388304-74f3-598c-a238-2864b7a58b7f"
"""Natural key: STEP, group 0."""
ROLLOUT = "e7f59ee3-cf5e-5c70-8f11-6e439d84b437"
"""Natural key: its name, "demo/g0/step-1/group-0/env-0/attempt-0"."""
OTHER_ROLLOUT = "efa16f55-923c-57b3-b703-d71a1e55dfa9"
"""The same group's env-1."""
ENVIRONMENT = "908a74d2-2db9-5dd2-a51b-afe2509399e8"
"""Natural key: ROLLOUT, environment 0."""
EVAL = "4f6d0efe-ba0a-55f8-a886-9d9f15d27d21"
"""Natural key: TRAINING, generation 0, step 1."""
TURN = "25758aa6-4384-568e-baeb-32e164d43876"
"""Natural key: ROLLOUT, turn 1."""
TASK = "9f284993-2da2-5a7e-bf87-2dda2a4530ba"
VALIDATOR = "0d894ef9-b360-5595-b67d-10bbaaf30981"

TRAINING_STREAM = f"training/{TRAINING}"
EVALUATION_STREAM = f"evaluation/{EVAL}"
ROLLOUT_STREAM = f"rollout/{ROLLOUT}"
ENVIRONMENT_STREAM = f"environment/{ENVIRONMENT}"

TOKENS_1_2_3_4 = "AQAAAAIAAAADAAAABAAAAA=="
TOKENS_5_6_7 = "BQAAAAYAAAAHAAAA"
LOGPROBS = "AAAAvwAAgL4AAIC/"
"""-0.5, -0.25, -1.0."""
SCREEN_BEFORE = "blob:sha256:" + "0b" * 32
SCREEN_AFTER = "blob:sha256:" + "1a" * 32


def at(clock: str) -> datetime:
    """A time of the example's day, 1 March 2026, in UTC: `at("11:58:30")`."""
    return datetime.fromisoformat(f"2026-03-01T{clock}").replace(tzinfo=UTC)


TRAINING_CREATED = TrainingCreated(
    run_name="demo",
    recipe=Recipe(
        model_name="policies/demo",
        learning_rate=0.001,
        batch_size=2,
        group_size=2,
        groups_per_batch=1,
        max_tokens=64,
        temperature=1.0,
        kl_penalty_coef=0.0,
        num_substeps=1,
        max_turns=4,
        seed=7,
        box_type="android",
    ),
    total_steps=1,
    config={"seed": 7},
)
STEP_CREATED = StepCreated(
    step_id=UUID(STEP), generation=0, step=1, batch=0, learning_rate=0.001, model_path=None
)
GROUP_CREATED = GroupCreated(
    group_id=UUID(GROUP),
    source_type="step",
    source_id=UUID(STEP),
    group_num=0,
    batch=0,
    num_rollouts=2,
)
ROLLOUT_CREATED = RolloutCreated(
    rollout_id="demo/g0/step-1/group-0/env-0/attempt-0",
    source_type="step",
    source_id=UUID(STEP),
    group_id=UUID(GROUP),
    batch=0,
    group_num=0,
    env_index=0,
    attempt=0,
    task_id=UUID(TASK),
    model_path=None,
    policy_version=0,
    is_eval=False,
    max_turns=4,
    temperature=1.0,
    seed=7,
)
ENVIRONMENT_REQUESTED = EnvironmentRequested(
    env_type="android_sim", box_type="android", config={"seed": 7}
)
EVALUATION_CREATED = EvaluationCreated(
    kind="scheduled",
    training_id=UUID(TRAINING),
    generation=0,
    step=1,
    model_path="policies/demo/1",
    total_tasks=8,
)
