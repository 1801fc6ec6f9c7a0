"""RewardSQL's grpo_trainer.yaml: what follows from each of its fields."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.foreign_files.convert import VERL, convert
from producer.foreign_files.reading import Reading
from producer.foreign_files.verl_trainer import read_verl_trainer, resolved

PUBLISHED = (Path(__file__).parents[2] / "data/recipes/rewardsql/grpo_trainer.yaml").read_text()


def read(tmp_path: Path, text: str = PUBLISHED, overridden: tuple[str, ...] = ()) -> Reading:
    path = tmp_path / "grpo_trainer.yaml"
    path.write_text(text)
    file = convert(path, "sql rl", overridden=overridden)
    assert file.origin is VERL
    return file.read


def read_fields(fields: dict[str, Any]) -> Reading:
    reading = Reading()
    read_verl_trainer(reading, Path("grpo.yaml"), fields)
    return reading


def with_field(name: str, value: str) -> str:
    """The published file with one field more, or another value of it."""
    import yaml

    fields = yaml.safe_load(PUBLISHED)
    *sections, last = name.split(".")
    section = fields
    for item in sections:
        section = section.setdefault(item, {})
    section[last] = yaml.safe_load(value)
    return str(yaml.safe_dump(fields))


def test_the_published_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = read(tmp_path)
    assert file.given == {
        "model_name": "./checkpoints/cocte_model",
        "train_type": "full",
        "data_path": "./verl/dataset/full_set/train.parquet",
        "eval_data_path": "./verl/dataset/full_set/test.parquet",
        "max_tokens": 512,
        "groups_per_batch": 48,
        "group_size": 8,
        "temperature": 1.0,
        "top_p": 1,
        "gradient_checkpointing": "off",
        "max_gradient_norm": 1.0,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.2,
        "dual_clip": 3,
        "entropy_coef": 0.001,
        "weight_decay": 0.01,
        "ppo_epochs": 1,
        "learning_rate_schedule": "constant",
        "kl_penalty_coef": 0.001,
        "kl_estimator": "k3",
        "kl_in": "loss",
        "loss_fn": "ppo",
        "loss_aggregation": "token_mean",
        "learning_rate": 1e-6,
        "verifier_coef": 1.0,
        "reward_port": 5887,
        "algorithm": "grpo",
        "core_function": "compute_grpo_process_advantage_avg_unique",
        # Of ppo alone, which a flag may choose.
        "gae_gamma": 1,
        "gae_lambda": 1,
        "value_learning_rate": 1e-5,
        "value_clip": 0.5,
        "mini_batch_size": 64,
        "warmup_ratio": 0.0,
        "epochs": 3,
        "training_name": "your_experiment_name",
        "save_every": 30,
        "eval_every": 30,
        "skip_baseline": True,
        "output_dir": "saves/grpo",
        **({} if find_spec("wandb") is None else {"wandb_project": "your_project_name"}),
    }
    assert file.unknown == []
    named = "\n".join(file.reasons())
    assert (file.told, file.unknown_line()) == ([], [])
    (line,) = file.summary()
    assert line.startswith("no effect here: actor_rollout_ref.actor.fsdp_config")
    assert line.endswith(" more; --verbose lists all, with the reasons")
    assert (
        "reward_model.rm_coef, reward_model.enable_EXreward (reason: reward_model.enable is not"
        in named
    )
    assert "entropy" not in named


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("actor_rollout_ref.model.lora_rank", "8", {"lora_rank": 8}),
        ("actor_rollout_ref.model.lora_rank", "0", {"train_type": "full", "lora_rank": None}),
        ("actor_rollout_ref.model.target_modules", "all-linear",
         {"train_type": None, "target_modules": "all"}),
        ("actor_rollout_ref.model.target_modules", "[q_proj]", {"target_modules": ["q_proj"]}),
        ("actor_rollout_ref.model.enable_gradient_checkpointing", "true",
         {"gradient_checkpointing": "on"}),
        ("data.seed", "7", {"seed": 7}),
        ("actor_rollout_ref.rollout.val_kwargs.temperature", "0.5", {"eval_temperature": 0.5}),
        ("actor_rollout_ref.actor.clip_ratio_high", "0.28",
         {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28}),
        ("actor_rollout_ref.actor.clip_ratio_c", "3.0", {"dual_clip": 3.0}),
        ("actor_rollout_ref.actor.kl_loss_type", "mse", {"kl_estimator": "k2"}),
        ("actor_rollout_ref.actor.loss_agg_mode", "seq-mean-token-mean",
         {"loss_aggregation": "sequence_mean"}),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", "gspo", {"loss_fn": "gspo"}),
        ("actor_rollout_ref.actor.optim.lr_warmup_steps", "5", {"learning_rate_warmup_steps": 5}),
        ("trainer.total_training_steps", "40", {"num_steps": 40}),
        ("trainer.save_freq", "-1", {"save_every": 0}),
        ("trainer.val_before_train", "true", {"skip_baseline": False}),
        ("trainer.resume_mode", "disable", {"behavior_if_log_dir_exists": "raise"}),
        ("actor_rollout_ref.actor.entropy_coeff", "0.01", {"entropy_coef": 0.01}),
        ("actor_rollout_ref.actor.ppo_epochs", "2", {"ppo_epochs": 2}),
        ("actor_rollout_ref.actor.optim.weight_decay", "0.1", {"weight_decay": 0.1}),
        ("actor_rollout_ref.actor.optim.warmup_style", "cosine",
         {"learning_rate_schedule": "cosine", "min_learning_rate_ratio": 0.0}),
        ("actor_rollout_ref.rollout.top_p", "0.9", {"top_p": 0.9}),
        ("verifier.reward_coef", "0.5", {"verifier_coef": 0.5}),
        ("algorithm.norm_adv_by_std_in_grpo", "false", {"normalize_by_std": False}),
        ("data.train_files", "[a.parquet]", {"data_path": "a.parquet"}),
    ],
)  # fmt: skip
def test_a_field_is_honoured(
    tmp_path: Path, name: str, value: str, given: dict[str, object]
) -> None:
    file = read(tmp_path, with_field(name, value))
    assert {item: file.given.get(item) for item in given} == given
    assert file.unknown == []


def test_a_reward_model_that_is_on_is_taken_with_its_weight(tmp_path: Path) -> None:
    text = PUBLISHED.replace("enable: False\n  strategy", "enable: True\n  strategy").replace(
        "rm_coef: 0.0", "rm_coef: 0.7"
    )
    file = read(tmp_path, text)
    assert file.given["process_reward_model"] == Path("checkpoints/prm_model")
    assert file.given["rm_coef"] == 0.7
    assert file.given["reward_model_sees_results"] is True
    off = text.replace("enable_EXreward: True", "enable_EXreward: False")
    assert read(tmp_path, off).given["reward_model_sees_results"] is False
    assert read(tmp_path, off).given["verifier_coef"] == 1.0


def test_ppo_has_values_and_their_settings(tmp_path: Path) -> None:
    file = read(tmp_path, with_field("algorithm.adv_estimator", "gae"))
    assert file.given["algorithm"] == "ppo"
    wanted = {"gae_gamma": 1.0, "gae_lambda": 1.0, "value_learning_rate": 1e-5, "value_clip": 0.5}
    assert {name: file.given[name] for name in wanted} == wanted


def test_without_a_penalty_in_the_loss_its_settings_are_named(tmp_path: Path) -> None:
    file = read(tmp_path, with_field("actor_rollout_ref.actor.use_kl_loss", "false"))
    assert "kl_penalty_coef" not in file.given
    assert "actor_rollout_ref.actor.kl_loss_coef" in file.without_effect


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("actor_rollout_ref.rollout.top_k", "50", r"rollout\.top_k: 50 cannot be honoured"),
        ("actor_rollout_ref.rollout.do_sample", "false", "do_sample: False cannot be honoured"),
        ("actor_rollout_ref.actor.optim.warmup_style", "x", "warmup_style: 'x' is not one of"),
        ("actor_rollout_ref.actor.optim.num_cycles", "2", "num_cycles: 2 cannot be honoured"),
        ("algorithm.prefinetune_epoch", "1", "prefinetune_epoch: 1 cannot be honoured"),
        ("actor_rollout_ref.actor.kl_loss_type", "full", "kl_loss_type: 'full' cannot"),
        ("actor_rollout_ref.actor.kl_loss_type", "kl", "kl_loss_type: 'kl' has an expected"),
        ("actor_rollout_ref.actor.loss_agg_mode", "other", "loss_agg_mode: 'other' cannot"),
        (
            "algorithm.adv_estimator",
            "other",
            "adv_estimator: 'other' is not one of gae, gae_covariance, grpo",
        ),
        ("algorithm.use_kl_in_reward", "true", "use_kl_in_reward: the KL penalty is in one place"),
        ("reward_model.reward_manager", "other", "reward_manager: 'other' is not registered"),
        ("trainer.resume_mode", "resume_path", "resume_mode: 'resume_path' cannot be honoured"),
        ("trainer.critic_warmup", "10", "critic_warmup: 10 cannot be honoured"),
        (
            "actor_rollout_ref.rollout.response_length",
            "99",
            "contradicts actor_rollout_ref.rollout.resp",
        ),
        ("data.train_files", "[a, b]", "data.train_files: several files cannot be honoured"),
    ],
)
def test_a_value_that_cannot_be_honoured_names_file_and_field(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read(tmp_path, with_field(name, value))
    assert "grpo_trainer.yaml has values that cannot be honoured" in str(raised.value)


def test_a_value_does_not_matter_where_a_flag_wins(tmp_path: Path) -> None:
    text = with_field("algorithm.adv_estimator", "other")
    with pytest.raises(UsageError, match="adv_estimator: 'other' is not one of"):
        read(tmp_path, text)
    assert "algorithm" not in read(tmp_path, text, overridden=("algorithm",)).given


def test_an_unknown_field_is_named_and_ignored(tmp_path: Path) -> None:
    file = read(tmp_path, with_field("trainer.new_field", "1"))
    assert file.unknown == ["trainer.new_field"]


def test_interpolations_stand_for_values_and_sections() -> None:
    fields = {"a": {"b": 3, "c": "${a.b}"}, "d": "${a}", "e": "${a.b}/${a.c}", "f": ["${a.b}"]}
    assert resolved(fields, Path("x.yaml")) == {
        "a": {"b": 3, "c": 3},
        "d": {"b": 3, "c": 3},
        "e": "3/3",
        "f": [3],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": "${b}"}, "x.yaml: a: there is no field 'b'"),
        ({"a": "${b}", "b": "${a}"}, "x.yaml: a: refers to itself"),
    ],
)
def test_an_interpolation_that_fails_names_its_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolved(fields, Path("x.yaml"))


@pytest.mark.parametrize(
    ("estimator", "algorithm"),
    [
        *(("gae", "ppo"), ("gae_covariance", "ppo"), ("grpo", "grpo"), ("remax", "remax")),
        *(("reinforce++", "reinforce_plus_plus"), ("rloo", "rloo")),
    ],
)
def test_every_estimator_of_the_files_own_comment_is_read(estimator: str, algorithm: str) -> None:
    file = read_fields({"algorithm": {"adv_estimator": estimator}})
    assert file.given["algorithm"] == algorithm
    assert any("gae is computed" in line for line in file.told) == (estimator == "gae_covariance")


@pytest.mark.parametrize(
    ("folder", "is_placeholder"),
    [
        *(("/your/save/path", True), ("/path/to/save", True), ("your_output_dir", True)),
        *(("path/to/save", True), ("<output>", True), ("Path to save", True)),
        *(("./your/save/path", True), ("../path_to/save", True), ("/home/<user>/out", True)),
        *(("/data/your_name/x", True), ("/home/your-user-name/x", True), ("TODO", True)),
        *(("TODO: a folder", True), ("change_me", True), ("xxx/yyy", True), ("...", True)),
        *(("yours", False), ("/data/your/save", False), ("outputs/path", False)),
        *(("my_runs", False), ("todos", False), ("xx", False), ("/data/your_names", False)),
    ],
)
def test_a_placeholder_is_no_folder(folder: str, is_placeholder: bool) -> None:
    file = read_fields({"trainer": {"default_local_dir": folder}})
    assert file.given.get("output_dir") == (None if is_placeholder else folder)
    assert any("is a placeholder, ignored" in line for line in file.told) == is_placeholder
