"""Events that make several rows; given / when / then as in test_event_to_rows."""

from uuid import UUID

import pytest

from schemas.actions import Click
from schemas.step import Sample, SamplesChosen
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from tests.support.event_to_rows import NOW, EventToRows, changed, inserted
from tests.support.example_run import (
    GROUP,
    GROUP_CREATED,
    LOGPROBS,
    OTHER_ROLLOUT,
    ROLLOUT,
    ROLLOUT_CREATED,
    ROLLOUT_STREAM,
    SCREEN_AFTER,
    SCREEN_BEFORE,
    STEP,
    STEP_CREATED,
    TOKENS_1_2_3_4,
    TOKENS_5_6_7,
    TRAINING_CREATED,
    TRAINING_STREAM,
    TURN,
    at,
)

pytestmark = pytest.mark.services


@pytest.fixture
def case(migrated_url: str) -> EventToRows:
    return EventToRows(migrated_url)


def test_turn_taken_inserts_the_turn_its_actions_and_what_was_seen(case: EventToRows) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    case.when(
        ROLLOUT_STREAM,
        TurnTaken(
            turn=1,
            started_at=at("11:59:20"),
            ended_at=at("11:59:22.5"),
            policy_version=0,
            screenshot_before=SCREEN_BEFORE,
            screenshot_after=SCREEN_AFTER,
            text="Turn Wi-Fi on.",
            model_response="click(31,52) dance()",
            tokens=TokenRecord(
                prompt_tokens=TOKENS_1_2_3_4,
                prompt_images=(SCREEN_BEFORE,),
                completion_tokens=TOKENS_5_6_7,
                completion_logprobs=LOGPROBS,
                sampling=Sampling(temperature=1.0, max_tokens=64),
                stop_reason="stop",
            ),
            actions=(
                TakenAction(
                    tool_name="click", tool_args={"at": [310, 520]}, action=Click(x=31, y=52)
                ),
                TakenAction(
                    tool_name="dance",
                    tool_args={},
                    action=None,
                    error_type="tool_name",
                    error_message="no tool is called dance",
                ),
            ),
            reward=0.0,
            episode_done=False,
            progress_percent=25.0,
            metrics={"sample_s": 0.5},
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
            metrics_json={"sample_s": 0.5},
            model_response="click(31,52) dance()",
            stop_reason="stop",
            num_tokens=3,
            created_at=NOW,
        ),
        inserted(
            "action",
            id="8ebc87cb-bfdd-5ad7-964f-379cdd8ea8f9",
            turn_id=TURN,
            action_index=0,
            action_type="click",
            action_json={"type": "click", "x": 31, "y": 52, "button": "left"},
            tool_name="click",
            tool_args={"at": [310, 520]},
            tokens=TOKENS_5_6_7,
            logprobs=LOGPROBS,
            num_tokens=3,
            created_at=NOW,
        ),
        inserted(
            "action",
            id="383d194e-b44f-5a06-aa16-b7ac4ebe74f8",
            turn_id=TURN,
            action_index=1,
            tool_name="dance",
            tool_args={},
            error_type="tool_name",
            error_message="no tool is called dance",
            created_at=NOW,
        ),
        inserted(
            "obs",
            id="95e26245-2fb5-55fe-9979-a421c82a7f8c",
            turn_id=TURN,
            obs_type="screenshot_before",
            screenshot_uri=SCREEN_BEFORE,
            model_input_json={
                "prompt_extends": None,
                "num_prompt_tokens": 4,
                "prompt_images": [SCREEN_BEFORE],
                "sampling": {"temperature": 1.0, "max_tokens": 64, "top_p": 1.0, "seed": None},
            },
            created_at=NOW,
        ),
        inserted(
            "obs",
            id="cbdc596e-87d2-59c6-b4a2-f4fe7f6ebcff",
            turn_id=TURN,
            obs_type="text",
            text_content="Turn Wi-Fi on.",
            created_at=NOW,
        ),
        inserted(
            "obs",
            id="d5240a07-ec6e-59df-a643-fdb90df8112e",
            turn_id=TURN,
            obs_type="model_response",
            text_content="click(31,52) dance()",
            created_at=NOW,
        ),
        inserted(
            "obs",
            id="ba5ced8d-c1c5-5010-abeb-d9a37fc2b3ef",
            turn_id=TURN,
            obs_type="screenshot_after",
            screenshot_uri=SCREEN_AFTER,
            created_at=NOW,
        ),
        changed("rollout", ROLLOUT, current_turn=1, progress_percent=25.0, updated_at=NOW),
    )


def test_samples_chosen_inserts_a_sample_for_each_rollout_used_or_not(case: EventToRows) -> None:
    used = Sample(
        rollout_id=UUID(ROLLOUT),
        group_id=UUID(GROUP),
        advantage=0.5,
        reward=1.0,
        policy_version=0,
        staleness=0,
        num_tokens=6,
        used=True,
    )
    stale = used.model_copy(
        update={
            "rollout_id": UUID(OTHER_ROLLOUT),
            "advantage": None,
            "staleness": 3,
            "used": False,
            "drop_reason": "stale",
        }
    )
    common = {"step_id": STEP, "group_id": GROUP, "reward": 1.0, "policy_version": 0}
    common |= {"num_tokens": 6, "created_at": NOW}
    case.given(TRAINING_STREAM, TRAINING_CREATED, STEP_CREATED, GROUP_CREATED)
    case.when(TRAINING_STREAM, SamplesChosen(step_id=UUID(STEP), samples=(used, stale))).then(
        inserted("sample", rollout_id=ROLLOUT, used=True, advantage=0.5, staleness=0, **common),
        inserted(
            "sample",
            rollout_id=OTHER_ROLLOUT,
            used=False,
            drop_reason="stale",
            staleness=3,
            **common,
        ),
    )
