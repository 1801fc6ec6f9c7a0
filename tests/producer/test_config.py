"""What `cua-train run` may be told."""

import pytest

from producer.config import DEMO_PRESET, RunConfig, differences, read_config
from producer.errors import UsageError


def test_without_a_policy_the_demo_preset_applies_and_what_is_given_wins() -> None:
    config = read_config({"group_size": 4})
    assert config.model_name == "demo"
    assert config.learning_rate == DEMO_PRESET["learning_rate"]
    assert config.group_size == 4
    assert config.explicit == {"group_size"}


def test_with_a_policy_the_recipes_defaults_are_in_force() -> None:
    config = read_config({"model_name": "some/policy", "tasks": {"source_type": "demo_training"}})
    recipe = (
        config.lora_rank,
        config.max_turns,
        config.group_size,
        config.groups_per_batch,
        config.learning_rate,
        config.max_tokens,
    )
    assert recipe == (32, 20, 4, 10, 1e-5, 2048)
    assert (
        config.eval_every,
        config.save_every,
        config.num_substeps,
        config.kl_penalty_coef,
        config.seed,
    ) == (10, 10, 1, 0.0, 0)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"no_such_field": 1}, "no_such_field"),
        ({"group_size": 0}, "group_size"),
        ({"learning_rate": "nan"}, "learning_rate"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"temperature": "warm"}, "temperature"),
        ({"loss_fn": "dpo"}, "loss_fn"),
        ({"box_type": "linux"}, "box_type"),
        ({"training_name": "a/b"}, "training_name"),
        ({"model_name": "some/policy"}, "tasks"),
        ({"group_size": 2, "min_group_size": 3}, "min_group_size"),
    ],
)
def test_what_is_unknown_or_impossible_is_a_usage_error_that_names_the_field(
    given: dict[str, object], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        read_config(given)


def test_every_field_says_what_it_is() -> None:
    assert [name for name, field in RunConfig.model_fields.items() if not field.description] == []


def test_a_longer_run_is_the_same_training_and_another_rate_is_not() -> None:
    recorded = read_config({}).recorded()
    assert differences(recorded, read_config({"num_steps": 999}).recorded()) == []
    assert differences(recorded, read_config({"learning_rate": 0.5}).recorded()) == [
        "learning_rate: 0.0015 -> 0.5"
    ]
