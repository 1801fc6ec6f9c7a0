"""Settings whose effect is seen in what a training records."""

from pathlib import Path
from typing import Any

import pytest

from producer.config import read_config
from producer.environments.wrapper import BlankedEnvironment
from producer.training.open_policy import open_policy
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import ReadLog, of_type
from tests.support.small_run import one_step, small


@pytest.mark.parametrize(("save_every", "saved"), [(2, [0, 2, 4, 5]), (5, [0, 5]), (0, [5])])
def test_checkpoints_are_saved_every_so_many_steps_and_after_the_last(
    installation: Installation, read_log: ReadLog, save_every: int, saved: list[int]
) -> None:
    run(
        small(num_steps=5, save_every=save_every, skip_baseline=True, eval_every=0),
        installation=installation,
    )
    assert [event["step"] for event in of_type(read_log(), "checkpoint.saved")] == saved


@pytest.mark.parametrize(("eval_every", "evaluated"), [(2, [2, 4, 5]), (0, [5]), (9, [5])])
def test_evaluations_are_made_every_so_many_steps_and_after_the_last(
    installation: Installation, read_log: ReadLog, eval_every: int, evaluated: list[int]
) -> None:
    run(small(num_steps=5, eval_every=eval_every), installation=installation)
    made = of_type(read_log(), "evaluation.created")
    assert [item["step"] for item in made if item["kind"] == "scheduled"] == evaluated
    assert [item["kind"] for item in made].count("baseline") == 1


def test_evaluations_have_a_temperature_and_a_number_of_episodes_of_their_own(
    installation: Installation, read_log: ReadLog
) -> None:
    run(
        small(num_steps=1, temperature=0.75, eval_temperature=0.25, eval_episodes=5),
        installation=installation,
    )
    created = of_type(read_log(), "rollout.created")
    sampled = [(item["is_eval"], item["temperature"]) for item in created]
    # A baseline and the evaluation after the last step; two groups of three.
    assert sorted(sampled) == [(False, 0.75)] * 6 + [(True, 0.25)] * 10


def test_an_episode_ends_unsolved_when_its_time_is_over(
    installation: Installation, read_log: ReadLog
) -> None:
    summary = run(
        small(
            num_steps=0,
            eval_episodes=3,
            oracle_noise=0.0,
            max_task_time_seconds=1e-6,
            tasks={"source_type": "ids", "task_ids": ["train_02_enable_wifi"]},
        ),
        installation=installation,
    )
    assert summary.success_before == 0.0  # it takes four turns
    ends = of_type(read_log(), "rollout.finished")
    assert [end["num_turns"] for end in ends] == [1, 1, 1]


def test_a_training_sees_as_many_tasks_and_attempts_as_its_batch_says(
    installation: Installation, read_log: ReadLog
) -> None:
    run(
        small(num_steps=2, groups_per_batch=4, group_size=2, skip_baseline=True, eval_episodes=1),
        installation=installation,
    )
    steps = of_type(read_log(), "step.finished")
    assert [step["num_trajectories"] for step in steps] == [8, 8]
    groups = [
        event for event in of_type(read_log(), "group.created") if event["source_type"] == "step"
    ]
    assert [group["num_rollouts"] for group in groups] == [2] * 8


def test_devices_are_blanked_where_it_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from producer.agents.android.policy.build import build_policy
    from tests.producer.policy.conftest import TEXTS
    from tests.support.small_size import SIZE

    build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
    for ablate in ("none", "blank-screenshots"):
        config = one_step(tmp_path / "policy", renderer_name="compact", ablate=ablate)
        _, make_environment = open_policy(config, tmp_path)
        device = make_environment(None)  # type: ignore[arg-type]  # the simulated phone needs none
        assert isinstance(device, BlankedEnvironment) is (ablate == "blank-screenshots")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"box_type": "linux"}, "box_type: only for environment gbox"),
        (
            {"environment": "windows"},
            '"windows" is not one of android, dbbench, text_to_sql, adb, gbox',
        ),
        ({"wandb_name": "x"}, "wandb_name: needs a wandb_project"),
        ({"dbbench_database": "mysql://me@h:1"}, "dbbench_database: only for environment dbbench"),
        (
            {"environment": "dbbench", "dbbench_database": "mysql://me:secret@h:1"},
            "dbbench_database: .*must not contain a password",
        ),
    ],
)
def test_what_is_not_there_yet_or_goes_with_nothing_is_refused_by_name(
    fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(Exception, match=named):
        read_config(fields)
