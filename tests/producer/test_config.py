"""Which configurations are valid, and what a user reads about the others."""

from typing import get_args

import pytest

from producer.config import (
    DEMO_PRESET,
    NONE_IS_A_VALUE,
    RunConfig,
    differences,
    read_config,
    read_fields,
)
from producer.errors import UsageError
from producer.field_errors import OTHER_NAMES
from producer.policy.adapter_settings import AdapterSettings


def test_without_a_policy_the_demo_preset_applies_and_what_is_given_wins() -> None:
    config = read_config({"group_size": 4})
    assert config.model_name == "demo"
    assert config.learning_rate == DEMO_PRESET["learning_rate"]
    assert config.group_size == 4
    assert config.explicit == {"group_size"}


OPTIONAL_NUMBERS = (
    *("clip_ratio_low", "clip_ratio_high", "dual_clip", "importance_cap", "max_gradient_norm"),
    *("lora_alpha", "cpu_threads", "kv_cache_bytes", "max_steps_off_policy", "reward_port"),
)


def test_true_and_false_are_no_numbers_in_any_field_of_the_configuration() -> None:
    defaults = {name: field.default for name, field in RunConfig.model_fields.items()}
    numbers = {name for name, value in defaults.items() if type(value) in {int, float}}
    assert {"group_size", "learning_rate", "max_recent_turns", "seed"} <= numbers
    for name in (*numbers, *OPTIONAL_NUMBERS):
        for value, written in ((True, "true"), (False, "false")):
            with pytest.raises(
                UsageError, match=rf"^{name}: {written} is not (an integer|a number)$"
            ):
                read_fields({name: value})


def test_with_a_policy_the_recipes_defaults_are_in_force() -> None:
    config = read_config({"model_name": "some/policy", "tasks": {"source_type": "demo_training"}})
    recipe = {"lora_rank": 32, "max_turns": 20, "group_size": 4, "groups_per_batch": 10}
    recipe |= {"max_tokens": 2048, "eval_every": 10, "save_every": 10, "num_substeps": 1, "seed": 0}
    assert {name: getattr(config, name) for name in recipe} == recipe
    assert (config.learning_rate, config.kl_penalty_coef) == (1e-5, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group_size": "abc"}, 'group_size: "abc" is not an integer'),
        ({"group_size": 1.5}, "group_size: 1.5 is not an integer"),
        ({"group_size": 0}, "group_size: 0 is out of range; it must be at least 1"),
        ({"oracle_noise": 2}, "oracle_noise: 2 is out of range; it must be at most 1"),
        ({"num_steps": 10**20}, "is out of range; it must be at most 1,000,000"),
        ({"seed": 2**63}, "is out of range; it must be less than 9,223,372,036,854,775,808"),
        ({"model_name": "orcale"}, "has no default tasks; give some, "),
        ({"model_name": "orcale"}, "}. Did you mean 'oracle'?"),
        (
            {"model_name": "oracle", "load_checkpoint_path": "x"},
            "load_checkpoint_path: the policy `oracle` has no adapter; omit it",
        ),
        ({"max_turn_time_seconds": 0}, "max_turn_time_seconds: 0 is out of range; it must be more"),
        ({"learning_rate": [1]}, "learning_rate: [1] is not a number"),
        ({"learning_rate": "inf"}, "learning_rate: "),
        ({"learning_rate": "nan"}, "learning_rate: "),
        ({"learning_rate": -1}, "learning_rate: -1 is out of range; it must be at least 0"),
        ({"temperature": "warm"}, 'temperature: "warm" is not a number'),
        ({"box_type": "linux"}, "box_type"),
        ({"group_size": 2, "min_group_size": 3}, "min_group_size: 3 is more than group_size (2)"),
        (
            {"group_size": 1},
            "group_size: 1 is fewer than the 2 rollouts that a group needs to compare them; use 2"
            " or more, or an advantage that does not compare the rollouts of a group, such as"
            " reinforce",
        ),
        ({"model_name": "oracle", "lora_alpha": "3"}, "lora_alpha: the policy `oracle` has no ad"),
        (
            {"model_name": "oracle", "target_modules": "3"},
            "target_modules: the policy `oracle` has",
        ),
        ({"skip_baseline": "perhaps"}, 'skip_baseline: "perhaps" is not true or false'),
        ({"log_path": 3}, "log_path: 3 is not a path"),
        (
            {"loss_fn": "pp"},
            '"pp" is not one of importance_sampling, reinforce, ppo, cispo, gspo. Did you mean ',
        ),
        (
            {"loss_fn": {"a": 1}},
            '{"a": 1} is not one of importance_sampling, reinforce, ppo, cispo, gspo',
        ),
        ({"training_name": ".."}, "training_name: '..' starts with '.'; use letters and digits"),
        ({"model_name": "x"}, "tasks: 'x' has no default tasks; give some, for example"),
        (
            {"environment": "text_to_sql", "model_name": "oracle"},
            "tasks: environment text_to_sql has no default tasks; give some, for example",
        ),
        ({"environment": "text_to_sql"}, "tasks: environment text_to_sql has no default tasks"),
        (
            {"environment": "text_to_sql", "model_name": "x"},
            "tasks: 'x' has no default tasks in environment text_to_sql; give some, for example",
        ),
        (
            {"advantage": "gae", "model_name": "oracle"},
            "advantage: the policy `oracle` has no value head; omit it",
        ),
        ({"gae_lambda": 0.9}, "gae_lambda: has no effect on the advantage mean_centered"),
        (
            {"advantage": "grpo", "advantage_by_std": True},
            "advantage_by_std: has no effect on the advantage grpo",
        ),
        (
            {"advantage": "grpo_passk", "min_group_size": 1},
            "min_group_size: grpo_passk compares the rollouts of a group; use 2 or more",
        ),
        (
            {"clip_ratio_low": 0.1},
            "clip_ratio_low: has no effect on the loss importance_sampling, which does not clip",
        ),
        (
            {"clip_ratio_high": 0.1, "loss_fn": "reinforce"},
            "clip_ratio_high: has no effect on the loss reinforce, which does not clip",
        ),
        ({"dual_clip": 3, "loss_fn": "cispo"}, "dual_clip: has no effect on the loss cispo"),
        ({"dual_clip": 1, "loss_fn": "ppo"}, "dual_clip: 1 is out of range; it must be more than"),
        (
            {"importance_cap": 2},
            "importance_cap: has no effect where the trained policy samples in this process",
        ),
        (
            {"importance_cap": 0.5, "max_steps_off_policy": 1},
            "importance_cap: 0.5 is out of range; it must be at least 1",
        ),
        ({"kl_estimator": "k3"}, "kl_estimator: has no effect with kl_penalty_coef 0"),
        ({"kl_in": "loss"}, "kl_in: has no effect with kl_penalty_coef 0"),
        (
            {"kl_in": "loss", "kl_penalty_coef": 0.1},
            "kl_estimator: k1 has an expected gradient of 0 as a term of the loss",
        ),
    ],
)
def test_a_field_that_is_wrong_is_named_with_its_value_and_what_it_takes(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as wrong:
        read_config(given)
    assert message in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_an_unknown_field_brings_the_nearest_and_all_others() -> None:
    with pytest.raises(UsageError) as wrong:
        read_config({"grup_size": 4})
    first, *lines = str(wrong.value).splitlines()
    assert first == "the configuration is not valid:"
    assert lines[0] == "  grup_size: there is no such field. Did you mean 'group_size'?"
    assert lines[1].startswith("  the fields are: training_name, ")
    named = " ".join(lines[1:]).partition(": ")[2].split(", ")
    assert sorted(name.strip() for name in named) == sorted(RunConfig.model_fields)
    assert max(map(len, lines)) <= 80


def test_several_problems_are_listed_one_per_line() -> None:
    with pytest.raises(UsageError) as wrong:
        read_config({"group_size": "x", "max_turns": 0, "loss_fn": "dpo"})
    assert len(str(wrong.value).splitlines()) == 1 + 3
    with pytest.raises(UsageError) as wrong:
        read_config({"group_size": 1, "wandb_name": "x", "model_name": "x"})
    assert len(str(wrong.value).splitlines()) == 1 + 3


@pytest.mark.parametrize("value", [[1], {"a": 1}, "warm", 1.5, True, -1, float("nan"), "", 10**30])
def test_no_field_answers_a_wrong_value_in_the_words_of_the_library(value: object) -> None:
    for name in RunConfig.model_fields:
        try:
            read_config({name: value})
        except UsageError as error:
            assert not any(  # noqa: PT017  # most values of most fields are valid
                words in str(error)
                for words in ("nput should", "should match", "not permitted", "is not valid (")
            ), str(error)


def test_every_field_says_what_it_is() -> None:
    assert [name for name, field in RunConfig.model_fields.items() if not field.description] == []


def test_a_longer_run_is_the_same_training_and_another_rate_is_not() -> None:
    recorded = read_config({}).recorded()
    assert differences(recorded, read_config({"num_steps": 999}).recorded()) == []
    assert differences(recorded, read_config({"learning_rate": 0.5}).recorded()) == [
        "learning_rate: 0.0015 -> 0.5"
    ]


def test_lora_alpha_is_twice_the_rank_unless_it_is_given() -> None:
    assert read_config({}).lora_alpha == 32
    assert read_config({"lora_rank": 3}).lora_alpha == 6
    assert read_config({"lora_rank": 3, "lora_alpha": 5}).lora_alpha == 5
    assert read_config({"model_name": "oracle"}).lora_alpha is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("attention", ("attention",)),
        (r".*q_proj", (r".*q_proj",)),
        ('["q_proj", "v_proj"]', ("q_proj", "v_proj")),
        (["q_proj"], ("q_proj",)),
        (None, None),
    ],
)
def test_target_modules_are_a_word_or_a_list(given: object, expected: object) -> None:
    config = read_config({"target_modules": given})
    assert config.target_modules == expected
    assert read_config(config.recorded()).target_modules == expected


@pytest.mark.parametrize("given", ["[", "[]", [], "", [3], 3])
def test_target_modules_that_are_no_names_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match="target_modules"):
        read_config({"target_modules": given})


def test_the_settings_of_an_adapter_are_recorded() -> None:
    settings = AdapterSettings(3, 5.0, ("q_proj",), None, None)
    config = read_config({"load_checkpoint_path": "x"}).with_adapter(settings)
    assert (config.lora_rank, config.lora_alpha, config.target_modules) == (3, 5.0, ("q_proj",))
    assert config.explicit == {"load_checkpoint_path"}


@pytest.mark.parametrize(("name", "same", "other"), [("lora_rank", 3, 4), ("lora_alpha", 5.0, 6.0)])
def test_other_settings_than_those_of_the_adapter_are_refused(
    name: str, same: float, other: float
) -> None:
    settings = AdapterSettings(3, 5.0, ("q_proj",), None, None)
    read_config({"load_checkpoint_path": "x", name: same}).with_adapter(settings)
    with pytest.raises(UsageError, match=f"{name}: the adapter x has {same:g}, not {other:g}"):
        read_config({"load_checkpoint_path": "x", name: other}).with_adapter(settings)


def test_the_recipe_keeps_5_recent_turns_and_the_preset_all() -> None:
    tasks = {"source_type": "demo_all"}
    assert read_config({}).max_recent_turns is None
    assert read_config({"model_name": "x/y", "tasks": tasks}).max_recent_turns == 5
    with pytest.raises(UsageError, match="max_recent_turns: 0 is out of range"):
        read_config({"max_recent_turns": 0})


@pytest.mark.parametrize("given", [None, "none"])
def test_all_recent_turns_can_be_asked_for_and_are_continued_with(given: str | None) -> None:
    config = read_config({"model_name": "oracle", "max_recent_turns": given})
    assert config.max_recent_turns is None
    assert "max_recent_turns" in config.explicit
    assert read_config(dict(config.recorded())).max_recent_turns is None


def test_none_is_a_value_of_every_field_that_takes_it_and_has_another_default() -> None:
    assert {
        name
        for name, field in RunConfig.model_fields.items()
        if field.default is not None and type(None) in get_args(field.annotation)
    } == NONE_IS_A_VALUE


def test_a_field_by_the_name_that_other_trainers_give_it_is_suggested() -> None:
    with pytest.raises(UsageError) as wrong:
        read_config({"lr": 1e-4, "Algorithm": "grpo", "gruop_size": 3})
    message = str(wrong.value)
    assert "lr: there is no such field. Did you mean 'learning_rate'?" in message
    assert "Algorithm: there is no such field. Did you mean 'advantage'?" in message
    assert "gruop_size: there is no such field. Did you mean 'group_size'?" in message


def test_every_other_name_stands_for_a_field_and_is_none_itself() -> None:
    fields = RunConfig.model_fields.keys()
    assert set(OTHER_NAMES.values()) <= fields
    assert OTHER_NAMES.keys() & fields == set()
