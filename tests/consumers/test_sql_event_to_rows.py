"""What events of SQL agents do to rows; given / when / then as in test_event_to_rows."""

import hashlib
from uuid import UUID

import pytest

from schemas.actions import ExecuteSql
from schemas.completion import CompletionStepsScored, StepScore
from schemas.entry import Column, EntryContent, EntryStated, TableInfo
from schemas.ids import entry_row_id
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured, SkillSuccess
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from tests.support.event_to_rows import NOW, EventToRows, changed, inserted
from tests.support.example_run import (
    EVAL,
    LOGPROBS,
    ROLLOUT,
    ROLLOUT_CREATED,
    ROLLOUT_STREAM,
    TASK,
    TOKENS_1_2_3_4,
    TOKENS_5_6_7,
    TRAINING,
    TRAINING_CREATED,
    TRAINING_STREAM,
    TURN,
    at,
)

pytestmark = pytest.mark.services


@pytest.fixture
def case(migrated_url: str) -> EventToRows:
    return EventToRows(migrated_url)


def test_a_turn_without_a_screen_has_its_model_input_on_its_text(case: EventToRows) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    case.when(
        ROLLOUT_STREAM,
        TurnTaken(
            turn=1,
            started_at=at("11:59:20"),
            ended_at=at("11:59:22.5"),
            policy_version=0,
            screenshot_before=None,
            screenshot_after=None,
            text="[(1,)]",
            model_response="Action: Operation",
            tokens=TokenRecord(
                prompt_tokens=TOKENS_1_2_3_4,
                prompt_images=(),
                completion_tokens=TOKENS_5_6_7,
                completion_logprobs=LOGPROBS,
                sampling=Sampling(temperature=1.0, max_tokens=64),
                stop_reason="stop",
            ),
            actions=(
                TakenAction(
                    tool_name="Operation",
                    tool_args={"sql": "SELECT 1"},
                    action=ExecuteSql(sql="SELECT 1"),
                    error_type="runtime",
                    error_message="too slow",
                ),
            ),
            reward=0.0,
            episode_done=False,
            progress_percent=30.0,
        ),
    ).then(
        inserted(
            "turn",
            id=TURN,
            rollout_id=ROLLOUT,
            turn=1,
            start_time="2026-03-01T11:59:20+00:00",
            end_time="2026-03-01T11:59:22.5+00:00",
            turn_time=2.5,
            reward=0.0,
            episode_done=False,
            policy_version=0,
            metrics_json={},
            model_response="Action: Operation",
            stop_reason="stop",
            num_tokens=3,
            created_at=NOW,
        ),
        inserted(
            "action",
            turn_id=TURN,
            action_index=0,
            action_type="execute_sql",
            action_json={"type": "execute_sql", "sql": "SELECT 1"},
            tool_name="Operation",
            tool_args={"sql": "SELECT 1"},
            error_type="runtime",
            error_message="too slow",
            tokens=TOKENS_5_6_7,
            logprobs=LOGPROBS,
            num_tokens=3,
            created_at=NOW,
        ),
        inserted(
            "obs",
            turn_id=TURN,
            obs_type="text",
            text_content="[(1,)]",
            model_input_json={
                "prompt_extends": None,
                "num_prompt_tokens": 4,
                "prompt_images": [],
                "sampling": {"temperature": 1.0, "max_tokens": 64, "top_p": 1.0, "seed": None},
            },
            created_at=NOW,
        ),
        inserted(
            "obs",
            turn_id=TURN,
            obs_type="model_response",
            text_content="Action: Operation",
            created_at=NOW,
        ),
        changed("rollout", ROLLOUT, current_turn=1, progress_percent=30.0, updated_at=NOW),
    )


def test_session_ended_says_how_it_ended_apart_from_what_it_came_to(case: EventToRows) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    case.when(
        ROLLOUT_STREAM,
        SessionEnded(
            entry_id=UUID(int=7),
            session_status="task_limit_reached",
            outcome="correct",
            answer=None,
            table_hash="5ee6b",
            num_rounds=3,
            num_operations=2,
            num_sql_errors=1,
            num_replayed=4,
            ended_at=at("11:59:40"),
        ),
    ).then(
        inserted(
            "session",
            id=ROLLOUT,
            entry_id=str(UUID(int=7)),
            session_status="task_limit_reached",
            outcome="correct",
            table_hash="5ee6b",
            num_rounds=3,
            num_operations=2,
            num_sql_errors=1,
            num_replayed=4,
            end_time="2026-03-01T11:59:40+00:00",
            created_at=NOW,
        )
    )


def test_steps_scored_makes_a_row_for_the_whole_and_one_for_each_step(case: EventToRows) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    steps = (
        StepScore(index=0, text="WITH a", first_token=0, last_token=3, score=0.5, label=0.25),
        StepScore(index=1, text="SELECT", first_token=4, last_token=9, score=0.75),
    )
    case.when(
        ROLLOUT_STREAM,
        CompletionStepsScored(
            scorer="prm",
            steps=steps,
            product=0.375,
            minimum=0.5,
            last=0.75,
            average=0.625,
            scored_at=at("11:59:40"),
        ),
    ).then(
        inserted(
            "completion_score",
            id="5245ba6b-4861-5b0c-8d08-073bfa56f013",
            completion_id=ROLLOUT,
            scorer="prm",
            num_steps=2,
            product=0.375,
            minimum=0.5,
            last=0.75,
            average=0.625,
            scored_at="2026-03-01T11:59:40+00:00",
            created_at=NOW,
        ),
        inserted(
            "step_score",
            id="e8df8b0d-aa67-52e8-a3b8-783e8c4e9d3a",
            completion_id=ROLLOUT,
            scorer="prm",
            step_index=0,
            text="WITH a",
            first_token=0,
            last_token=3,
            score=0.5,
            label=0.25,
            created_at=NOW,
        ),
        inserted(
            "step_score",
            id="b61b7aca-0ed0-5f3a-b752-527dfc907542",
            completion_id=ROLLOUT,
            scorer="prm",
            step_index=1,
            text="SELECT",
            first_token=4,
            last_token=9,
            score=0.75,
            created_at=NOW,
        ),
    )


def test_skills_measured_makes_a_row_for_each_skill(case: EventToRows) -> None:
    select = SkillSuccess(skill="select", num_sessions=4, num_correct=3, success_rate=0.75)
    case.given(TRAINING_STREAM, TRAINING_CREATED)
    case.when(
        TRAINING_STREAM,
        SkillsMeasured(
            evaluation_id=UUID(EVAL),
            generation=0,
            step=4,
            stage=2,
            trained_skill="insert",
            skills=(select,),
            measured_at=at("11:59:40"),
        ),
    ).then(
        inserted(
            "skill_success",
            id="ca8592c5-9661-5e05-b36b-4e8b52a6940f",
            training_id=TRAINING,
            evaluation_id=EVAL,
            generation=0,
            step=4,
            stage=2,
            trained_skill="insert",
            skill="select",
            num_sessions=4,
            num_correct=3,
            success_rate=0.75,
            measured_at="2026-03-01T11:59:40+00:00",
            created_at=NOW,
        )
    )


def test_entry_stated_makes_a_row_whose_hash_is_of_what_differs_from_the_defaults(
    case: EventToRows,
) -> None:
    content = EntryContent(
        kind="dbbench",
        entry_id="17",
        instruction="Count.",
        table_info=TableInfo(
            name="t", columns=(Column(name="x", type="INT"),), rows=((1,), (None,))
        ),
        answer_direct=((2,),),
        skills=("select",),
    )
    # Written out: keys sorted, nothing that has its default.
    canonical = (
        '{"answer_direct":[[2]],"entry_id":"17","instruction":"Count.","kind":"dbbench",'
        '"skills":["select"],"table_info":{"columns":[{"name":"x","type":"INT"}],"name":"t",'
        '"rows":[[1],[null]]}}'
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    entry = entry_row_id(UUID(TASK), digest)
    case.given(TRAINING_STREAM, TRAINING_CREATED)
    case.when(
        TRAINING_STREAM,
        EntryStated(id=entry, task_id=UUID(TASK), content_hash=digest, content=content),
    ).then(
        inserted(
            "entry",
            id=str(entry),
            task_id=TASK,
            content_hash=digest,
            kind="dbbench",
            entry_id="17",
            instruction="Count.",
            table_name="t",
            columns_json=[{"name": "x", "type": "INT"}],
            rows_json=[[1], [None]],
            answer_direct_json=[[2]],
            skills=["select"],
            created_at=NOW,
            updated_at=NOW,
        )
    )
