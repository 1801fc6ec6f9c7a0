"""`cua-train sql rl`: which configuration follows from flags and a trainer's file."""

import logging
from pathlib import Path
from typing import Any, get_args

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.commands.sql_rl_fields import Algorithm
from producer.commands.sql_rl_settings import settings_of
from producer.config import RunConfig, read_config
from producer.errors import UsageError
from producer.foreign_files.convert import VERL, Converted
from producer.foreign_files.reading import Reading
from producer.foreign_files.verl_trainer import read_verl_trainer
from producer.foreign_files.verl_trainer_fields import ESTIMATORS

pytest.importorskip("torch")

FILE: dict[str, Any] = {
    "data": {"train_batch_size": 4},
    "actor_rollout_ref": {
        "model": {"path": "a/policy"},
        "actor": {"ppo_mini_batch_size": 2, "optim": {"lr": "1e-6", "lr_warmup_steps_ratio": 0.5}},
        "rollout": {"n": 6},
    },
    "algorithm": {"adv_estimator": "rloo"},
    "trainer": {"total_epochs": 2},
}
ALGOS = """
def compute_weighted_grpo_advantage(token_level_rewards, eos_mask, index):
    return eos_mask, eos_mask

def compute_own_advantage(token_level_rewards, eos_mask, index):
    return eos_mask, eos_mask
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """18 training questions and 6 of other databases."""
    folder = tmp_path_factory.mktemp("data")
    written = write_synthetic(folder, 0, SyntheticSize(6, 2, 3, ("count",)))
    assert [item.num_questions for item in written.values()] == [18, 6]
    return folder


@pytest.fixture
def algos(tmp_path: Path) -> str:
    path = tmp_path / "algos.py"
    path.write_text(ALGOS)
    return str(path)


def config(data: Path | None, file: dict[str, Any] | None = None, **flags: Any) -> RunConfig:
    if data is not None:
        flags["data_path"] = data
    if file is None:
        return read_config(settings_of(flags))
    read, path = Reading(overridden=frozenset(flags)), Path("grpo.yaml")
    read_verl_trainer(read, path, file)
    return read_config(settings_of(flags, Converted(path, VERL, read)))


def test_a_files_epochs_batches_and_rates_become_steps(data: Path) -> None:
    """18 questions in batches of 4 are 4 steps an epoch, as verl drops the rest."""
    found = config(data, FILE)
    assert (found.num_steps, found.groups_per_batch, found.group_size) == (8, 4, 6)
    assert (found.num_substeps, found.learning_rate) == (2, 1e-6)
    assert found.learning_rate_warmup_steps == 4
    assert found.core_function == "compute_rloo_outcome_advantage"
    assert (found.loss_fn, found.loss_aggregation, found.max_turns) == ("ppo", "token_mean", 1)
    assert found.remove_constant_reward_groups is False
    assert (found.eval_episodes, found.environment) == (6, "text_to_sql")
    assert isinstance(found.eval_tasks, dict)
    assert found.eval_tasks["split"] == "dev"


def test_flags_win_over_the_file(data: Path) -> None:
    found = config(
        data, FILE, algorithm="grpo", epochs=3, groups_per_batch=6, group_size=2, num_substeps=1
    )
    assert (found.num_steps, found.groups_per_batch, found.group_size) == (9, 6, 2)
    assert (found.num_substeps, found.core_function) == (1, "compute_grpo_outcome_advantage")
    assert config(data, FILE, num_steps=5).num_steps == 5


def test_a_batch_smaller_than_verls_mini_batch_is_one_optimiser_step(data: Path) -> None:
    file = {**FILE, "data": {"train_batch_size": 1}}
    assert config(data, file).num_substeps == 1


def test_the_files_folder_of_questions_is_taken_and_a_missing_table_of_prompts_is_refused(
    data: Path,
) -> None:
    file = {**FILE, "data": {"train_files": str(data), "train_batch_size": 4}}
    assert config(None, file).tasks == config(data, FILE).tasks
    file["data"] = {"train_files": "train.parquet"}
    with pytest.raises(
        UsageError,
        match=r"grpo.yaml: data.train_files: there is no train.parquet, the folder",
    ):
        config(None, file)


@pytest.mark.parametrize(
    ("more", "chosen"),
    [
        ({}, "compute_grpo_outcome_advantage"),
        ({"process_reward_model": "/"}, "compute_grpo_process_advantage_avg_unique"),
        ({"core_function": "compute_token_wise_advantage"}, "compute_token_wise_advantage"),
        ({"algorithm": "rloo"}, "compute_rloo_outcome_advantage"),
    ],
)
def test_the_function_follows_from_the_algorithm_and_what_is_scored(
    data: Path, more: dict[str, Any], chosen: str
) -> None:
    assert config(data, None, model_name="a/policy", **more).core_function == chosen


def test_the_command_line_comes_before_the_file_and_the_file_before_the_algorithm(
    data: Path, algos: str
) -> None:
    section = {"adv_estimator": "grpo", "core_function": "compute_token_wise_advantage"}
    file = {**FILE, "algorithm": section}
    assert config(data, file).core_function == "compute_token_wise_advantage"
    found = config(data, file, core_algos=algos, core_function="compute_own_advantage")
    assert (found.core_function, found.core_algos) == ("compute_own_advantage", algos)
    assert found.core_algos_sha256 is not None
    searched = config(data, None, model_name="a/policy", core_algos=algos)
    assert searched.core_function == "compute_weighted_grpo_advantage"
    section = {"adv_estimator": "grpo", "core_algos": algos}
    assert config(data, {**FILE, "algorithm": section}).core_algos == algos


@pytest.mark.parametrize(
    ("estimator", "function", "advantage"),
    [
        ("reinforce++", "compute_reinforce_plus_plus_outcome_advantage", "mean_centered"),
        ("rloo", "compute_rloo_outcome_advantage", "mean_centered"),
        ("opo", "compute_opo_outcome_advantage", "mean_centered"),
        ("remax", None, "remax"),
        ("gae", None, "gae"),
        ("prime", None, "prime"),
    ],
)
def test_a_files_function_counts_for_grpo_alone(
    data: Path,
    estimator: str,
    function: str | None,
    advantage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in RewardSQL, whose published file names one beside any estimator."""
    named = "compute_grpo_process_advantage_avg_unique"
    file = {**FILE, "algorithm": {"adv_estimator": estimator, "core_function": named}}
    with caplog.at_level(logging.WARNING):
        found = config(data, file)
    assert (found.core_function, found.advantage) == (function, advantage)
    assert f"if you want the function, add --core-function {named}" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert config(data, file, core_function=named).core_function == named
    assert "has no effect" not in caplog.text


def test_ppo_has_a_value_head_and_the_loss_of_clipped_ratios(data: Path) -> None:
    found = config(data, None, model_name="a/policy", algorithm="ppo")
    assert (found.advantage, found.loss_fn, found.core_function) == ("gae", "ppo", None)
    file = {**FILE, "algorithm": {"adv_estimator": "gae", "gamma": 0.9, "lam": 0.8}}
    found = config(data, file)
    assert (found.gae_gamma, found.gae_lambda) == (0.9, 0.8)


def test_functions_of_the_users_that_are_not_taken_are_named(
    data: Path, algos: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = config(
            data,
            None,
            model_name="a/policy",
            core_algos=algos,
            core_function="compute_token_wise_advantage",
        )
    assert found.core_algos is None
    assert (
        "core_algos has no effect: compute_token_wise_advantage is a built-in function"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"core_function": "nobody"}, "core_function: there is no core function 'nobody'"),
        ({"core_algos": "/nowhere.py"}, "core_algos: there is no file '/nowhere.py'"),
        ({"model_name": None}, "--model-name: name the policy to train"),
        ({"data": None}, "--data-path: name the data set's folder"),
    ],
)
def test_what_cannot_be_trained_is_said(data: Path, more: dict[str, Any], message: str) -> None:
    flags = {"model_name": "a/policy", **more}
    folder = flags.pop("data", data)
    given = {name: value for name, value in flags.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        config(folder, None, **given)


def test_prime_trains_its_reward_model_with_the_files_settings(data: Path) -> None:
    file = {
        **FILE,
        "algorithm": {"adv_estimator": "prime", "reward_dpo_coef": 4, "reward_gt_coef": 3},
        "reward_model": {"model": {"beta_train": 0.1, "optim": {"lr": "2e-6"}}},
    }
    found = config(data, file)
    assert (found.advantage, found.core_function, found.loss_fn) == ("prime", None, "ppo")
    assert (found.prime_process_coef, found.prime_outcome_coef) == (4, 3)
    assert (found.prime_beta, found.prime_learning_rate) == (0.1, 2e-6)
    assert config(data, None, model_name="a/policy", algorithm="prime").advantage == "prime"
    other = config(data, file, algorithm="grpo")
    assert (other.advantage, other.prime_beta) == ("mean_centered", 0.05)


@pytest.mark.parametrize("algorithm", ["ppo", "prime"])
def test_with_a_core_function_the_algorithms_own_settings_have_no_effect(
    data: Path, algorithm: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Defaults: value_learning_rate 1e-3, value_clip 0.5, gae_gamma 1, prime_process_coef 5."""
    file: dict[str, Any] = {
        **FILE,
        "critic": {"optim": {"lr": 1e-5}, "cliprange_value": 0.25},
        "algorithm": {"adv_estimator": "grpo", "gamma": 0.5, "reward_dpo_coef": 4},
    }
    caplog.set_level(logging.DEBUG)
    found = config(data, file, algorithm=algorithm, core_function="compute_token_wise_advantage")
    assert found.core_function == "compute_token_wise_advantage"
    assert (found.value_learning_rate, found.value_clip) == (1e-3, 0.5)
    assert (found.gae_gamma, found.prime_process_coef) == (1, 5)
    assert "critic.optim.lr: no effect without the advantage gae" in caplog.text


def test_every_estimator_of_a_trainers_file_is_an_algorithm() -> None:
    assert {*ESTIMATORS.values(), "dapo"} == {*get_args(Algorithm)}


@pytest.mark.parametrize(
    ("algorithm", "function"),
    [
        (None, "compute_dr_grpo_outcome_advantage"),
        ("grpo", "compute_dr_grpo_outcome_advantage"),
        ("dapo", "compute_grpo_outcome_advantage"),
        ("rloo", "compute_rloo_outcome_advantage"),
    ],
)
def test_without_a_standard_deviation_grpo_is_dr_grpo(
    data: Path, algorithm: str | None, function: str
) -> None:
    section = {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False}
    flags = {} if algorithm is None else {"algorithm": algorithm}
    assert config(data, {**FILE, "algorithm": section}, **flags).core_function == function


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        ("trainer", {"total_epochs": "three"}, 'trainer.total_epochs: "three" is not an integer'),
        ("data", {"train_batch_size": "x"}, 'data.train_batch_size: "x" is not an integer'),
        ("data", {"train_batch_size": 0}, "data.train_batch_size: 0 is out of range"),
    ],
)
def test_a_value_that_no_number_of_steps_follows_from_is_named_as_in_the_file(
    data: Path, section: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        config(data, {**FILE, section: fields})


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        config(tmp_path / "nowhere", None, model_name="a/policy")
