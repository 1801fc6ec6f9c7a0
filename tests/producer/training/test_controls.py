"""Controls and baselines: other rewards, rejection sampling, learning rate 0, pass@k."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.algorithms.advantages import ADVANTAGES, Rewards
from producer.algorithms.controls import Judged, controlled
from producer.commands.flags import from_recipe
from producer.config import RunConfig, check_effects, read_config
from producer.errors import UsageError
from producer.training.metrics import passes_of_tasks
from producer.training.run import run
from producer.training.samples import SelectedSample, select_samples
from schemas.clustered_errors import TaskCount
from schemas.installation import Installation
from tests.producer.training.test_samples import outcome
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.small_run import one_step

__all__ = ["cua_train"]
ReadLog = Callable[[], list[dict[str, Any]]]
OUTCOMES = [outcome(1.0, 0.0), outcome(1.0, 1.0), outcome(0.0, 1.0, is_failed=True)]


def selected(config: RunConfig, seed: int = 0) -> list[SelectedSample]:
    groups = select_samples(config, OUTCOMES, control_seed=seed)
    return [item for group in groups for item in group]


def test_a_wrong_sign_negates_the_advantages_and_not_the_recorded_rewards() -> None:
    samples = selected(read_config({"control": "wrong_sign"}))
    # -1 and 0 have the mean -0.5; the second group is equal, the third failed.
    assert [item.advantage for item in samples] == [-0.5, 0.5, 0.0, 0.0, -0.5, 0.5]
    assert [item.result.reward for item in samples] == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert [item.drop_reason for item in samples[2:]] == ["zero_variance"] * 2 + [
        "group_failed"
    ] * 2


def test_shuffled_rewards_cross_groups_and_decide_which_of_them_teach() -> None:
    config = read_config({"control": "shuffled_rewards"})
    found = set()
    for seed in range(40):
        samples = selected(config, seed)
        assert [item.result.reward for item in samples] == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
        of_two_groups = tuple(item.advantage for item in samples[:4])
        # The three 1s and the 0 of the two groups that did not fail, in some order.
        assert sorted(abs(item or 0.0) for item in of_two_groups) == [0.0, 0.0, 0.5, 0.5]
        assert [item.drop_reason for item in samples[:4]].count("zero_variance") == 2
        found.add(of_two_groups)
    places = [(-0.5, 0.5, 0.0, 0.0), (0.5, -0.5, 0.0, 0.0)]
    assert found == {*places, *((*place[2:], *place[:2]) for place in places)}
    assert selected(config, 7) == selected(config, 7)


def test_shuffling_is_a_permutation_by_the_seed() -> None:
    judged = [Judged(reward, reward > 1) for reward in (0.0, 1.0, 2.0, 3.0, 4.0)]
    shuffled = [controlled("shuffled_rewards", judged, seed=seed) for seed in (1, 1, 2)]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[0]) == judged


def test_rejection_with_shuffled_rewards_imitates_as_many_rollouts_whatever_they_did() -> None:
    config = read_config({"advantage": "rejection", "control": "shuffled_rewards"})
    # Three of the four rollouts that did not fail are right: (1, 0), (1, 1).
    found = {tuple(item.advantage for item in selected(config, seed)[:4]) for seed in range(40)}
    assert found == {tuple(float(at != wrong) for at in range(4)) for wrong in range(4)}
    assert all(item.result.success == (item.result.reward == 1.0) for item in selected(config))


def test_rejection_with_ignored_rewards_imitates_every_rollout() -> None:
    samples = selected(read_config({"advantage": "rejection", "control": "ignored_rewards"}))
    assert [item.advantage for item in samples] == [1.0] * 4 + [None] * 2
    assert [item.result.success for item in samples[:2]] == [True, False]


@pytest.mark.parametrize(
    ("given", "control", "ablate"),
    [
        ("shuffled-rewards", "shuffled_rewards", "none"),
        ("ignored-rewards", "ignored_rewards", "none"),
        ("blank-screens", "none", "blank-screenshots"),
        ("blank_screens", "none", "blank-screenshots"),
    ],
)
def test_controls_have_one_name_with_hyphens_or_underscores(
    given: str, control: str, ablate: str
) -> None:
    config = read_config({"advantage": "rejection", "control": given})
    assert (config.control, config.ablate) == (control, ablate)
    assert [*from_recipe(["--control", given])] in (
        ["--control", control],
        ["--ablate", ablate],
    )
    assert [*from_recipe([f"--control={given}"])] == [*from_recipe(["--control", given])]


def test_ignored_rewards_teach_nothing_where_rollouts_are_compared() -> None:
    samples = selected(read_config({"control": "ignored_rewards"}))
    assert [item.advantage for item in samples[:4]] == [0.0] * 4
    assert [item.drop_reason for item in samples] == ["zero_variance"] * 4 + ["group_failed"] * 2


def test_a_run_with_ignored_rewards_warns_where_rollouts_are_compared(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    sizes: dict[str, Any] = {"num_steps": 1, "group_size": 2, "groups_per_batch": 1}
    tasks = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}
    config = {"model_name": "oracle", "tasks": tasks, "eval_episodes": 1, **sizes}
    summary = run(read_config({**config, "control": "ignored_rewards"}), installation=installation)
    assert (summary.status, summary.control) == ("completed", "ignored_rewards")
    assert "mean_centered gives every rollout the advantage 0" in caplog.text


def test_a_list_of_the_controls_has_blank_screens(cua_train: CuaTrain) -> None:
    refused = cua_train("run", "--control", "nonsense", expected=2).stderr
    assert "'wrong_sign', 'blank_screens'" in " ".join(refused.split())


def test_a_control_is_recorded_kept_when_the_training_continues_and_said_at_its_end(
    installation: Installation, read_log: ReadLog, cua_train: CuaTrain, monkeypatch: Any
) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    tasks = json.dumps({"source_type": "ids", "task_ids": ["train_02_enable_wifi"]})
    words = ("run", "--training-name", "c", "--model-name", "oracle", "--no-monitor")
    sizes = ("--group-size", "2", "--groups-per-batch", "2", "--eval-episodes", "1")
    more = ("--oracle-noise", "0.5", "--control", "wrong_sign", "--tasks", tasks)
    text = cua_train(*words, *sizes, *more, "--num-steps", "1").stdout
    assert "a control, wrong_sign: advantages use negated rewards" in text
    created = next(item for item in read_log() if item["type"] == "cua.training.created")
    assert created["data"]["config"]["control"] == "wrong_sign"
    last = json.loads(cua_train(*words, "--num-steps", "2", "--json").stdout.splitlines()[-1])
    assert (last["steps"], last["control"]) == (2, "wrong_sign")
    other = cua_train(*words, "--num-steps", "3", "--control", "shuffled_rewards", expected=2)
    assert "control: 'wrong_sign' -> 'shuffled_rewards'" in other.stderr
    rewards = {
        item["subject"]: item["data"]["reward"]
        for item in read_log()
        if item["type"] == "cua.rollout.finished"
    }
    samples = [
        sample
        for item in read_log()
        if item["type"] == "cua.step.samples_chosen"
        for sample in item["data"]["samples"]
    ]
    assert len(samples) == 8
    for sample in samples:
        assert sample["reward"] == rewards[f"rollout/{sample['rollout_id']}"]
    # Above the mean of true rewards, below 0.
    assert all(sample["advantage"] <= 0 for sample in samples if sample["reward"] == 1.0)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"advantage": "gae"}, "control: works only if advantages depend"),
        ({"advantage": "remax"}, "control: works only if advantages depend"),
        (
            {"advantage": "rejection"},
            "control: wrong_sign has no effect with the advantage rejection",
        ),
        (
            {"advantage": "reinforce", "baseline": "moving"},
            "control: works only if advantages depend",
        ),
    ],
)
def test_a_control_is_refused_where_it_does_not_decide_the_advantages(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        read_config({"control": "wrong_sign", **given})


def test_rejection_weighs_right_rollouts_1_and_others_0_whatever_their_rewards() -> None:
    rewards = Rewards([0.7, 0.9, -0.1], [0, 0, 1], [3, 4, 5], is_right_B=[True, False, True])
    assert ADVANTAGES["rejection"].compute(rewards) == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="which rollouts solved their task"):
        ADVANTAGES["rejection"].compute(Rewards([1.0], [0], [1]))


def test_rejection_sampling_trains_on_every_right_rollout_by_its_log_likelihood() -> None:
    config = read_config({"advantage": "rejection", "advantage_by_std": False})
    assert (config.loss_fn, config.remove_constant_reward_groups) == ("reinforce", False)
    samples = select_samples(config, OUTCOMES)
    assert [[(item.advantage, item.drop_reason) for item in group] for group in samples] == [
        [(1.0, None), (0.0, None)],
        [(1.0, None), (1.0, None)],
        [(None, "group_failed")] * 2,
    ]


def test_reinforce_is_refused_off_policy_unless_it_fits_right_samples() -> None:
    for given in ({"num_substeps": 2}, {"ppo_epochs": 2}, {"max_steps_off_policy": 1}):
        fields = {"model_name": "some/policy", "tasks": {"source_type": "demo_training"}, **given}
        config = read_config({**fields, "loss_fn": "reinforce"})
        with pytest.raises(UsageError, match="the loss reinforce assumes that the weights"):
            check_effects(config, config.explicit)
        fitted = read_config({**fields, "loss_fn": "reinforce", "advantage": "rejection"})
        check_effects(fitted, fitted.explicit)
        corrected = read_config({**fields, "loss_fn": "ppo"})
        check_effects(corrected, corrected.explicit)


def test_gspo_is_aggregated_by_sequence_unless_something_else_is_asked_for() -> None:
    assert read_config({"loss_fn": "gspo"}).loss_aggregation == "sequence_mean"
    assert read_config({"loss_fn": "ppo"}).loss_aggregation == "sum"
    asked = read_config({"loss_fn": "gspo", "loss_aggregation": "token_mean"})
    assert asked.loss_aggregation == "token_mean"


def test_pass_at_k_is_the_unbiased_estimator_averaged_over_tasks() -> None:
    # k = 2: 1 - C(3, 2) / C(4, 2) = 1/2 for 1 of 4, 1 - C(2, 2) / 6 = 5/6 for 2 of 4, 0 for 0 of 5.
    # k = 4: neither 3 nor 2 wrong ones fill 4 draws.
    by_task = {"a": TaskCount(1, 4), "b": TaskCount(2, 4), "c": TaskCount(0, 5)}
    assert passes_of_tasks(by_task, 1.0) == pytest.approx(
        {1: (1 / 4 + 1 / 2) / 3, 2: (1 / 2 + 5 / 6) / 3, 4: 2 / 3}
    )
    assert passes_of_tasks({**by_task, "d": TaskCount(1, 1)}, 0.5).keys() == {1}
    assert passes_of_tasks(by_task, 0.0) == passes_of_tasks({}, 1.0) == {}


def test_evaluate_prints_pass_at_k_of_sampled_episodes_alone(
    installation: Installation, cua_train: CuaTrain, monkeypatch: Any
) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    tasks = json.dumps({"source_type": "ids", "task_ids": ["train_02_enable_wifi"]})
    words = ("evaluate", "--model-name", "oracle", "--eval-tasks", tasks, "--episodes", "5")
    sampled = json.loads(cua_train(*words, "--temperature", "1", "--json").stdout)
    assert sampled["pass_at_k"].keys() == {"1", "2", "4"}
    assert sampled["pass_at_k"]["1"] == pytest.approx(sampled["success"])
    assert json.loads(cua_train(*words, "--json").stdout)["pass_at_k"] == {}
    assert "pass@1 " in cua_train(*words, "--temperature", "1").stdout


def test_learning_rate_0_changes_no_weight(installation: Installation, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from producer.agents.android.policy.build import build_policy
    from tests.producer.policy.conftest import TEXTS
    from tests.support.small_size import SIZE

    build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
    for name, rate in (("still", 0.0), ("moving", 0.1)):
        config = one_step(
            tmp_path / "policy",
            training_name=name,
            learning_rate=rate,
            weight_decay=0.1,
            renderer_name="compact",
            # Of equal rewards, too: the policy knows nothing, and its parse errors cost.
            advantage="reinforce",
            parse_error_cost=1.0,
        )
        run(config, installation=installation)
    adapters = {
        name: [
            (folder / "adapter_model.safetensors").read_bytes()
            for folder in sorted((installation.runs_dir / name / "checkpoints").glob("*/step-*"))
        ]
        for name in ("still", "moving")
    }
    assert [len(found) for found in adapters.values()] == [2, 2]
    assert adapters["still"][0] == adapters["still"][1]
    assert adapters["moving"][0] != adapters["moving"][1]
