"""The warm-up of the small text policy: whole or not at all, the same by its recipe, unbiased."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.scene import THEMES, column_names
from producer.agents.dbbench.data.splits import split_of, split_of_table
from producer.agents.dbbench.data.tasks import task_of
from producer.agents.dbbench.policy.demonstrations import demonstrate
from producer.agents.dbbench.policy.recipe import TextRecipe, warm_up_plan
from producer.agents.dbbench.policy.warm_up import (
    new_names,
    renamed,
    warm_up_sessions,
)
from producer.config import read_config
from producer.errors import StopRequestedError, UsageError
from producer.policy.scripted_learner import UNREADABLE
from producer.policy.torch_policy.loading import load_base
from producer.training.open_policy import built_policy
from tests.support.warmed_policies import text_policy

TINY = TextRecipe(num_entries=30, num_steps=3, batch_size=4)
HELD_OUT = [theme for theme in THEMES if split_of_table(theme.table) == "held_out"]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_a_recipe_makes_the_same_policy_and_another_recipe_another(tmp_path: Path) -> None:
    hashes = []
    seen: list[tuple[int, int]] = []
    for home in ("a", "b"):
        folder = text_policy(
            tmp_path / home, TINY, lambda _name, done, total, _loss: seen.append((done, total))
        )
        assert folder.name == TINY.policy_name
        hashes.append(
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        )
    assert hashes[0] == hashes[1]
    assert seen[-3:] == [(1, 3), (2, 3), (3, 3)]
    assert {"model.safetensors", "tokenizer.json", "cua_policy.json"} <= hashes[0].keys()
    assert replace(TINY, seed=1).policy_name != TINY.policy_name
    network, tokenizer = load_base(str(folder))
    assert network.config.model_type == "qwen3"
    for theme in HELD_OUT:
        assert len(tokenizer(f" {theme.table}")["input_ids"]) == 2  # a space and one word


def test_a_stopped_warm_up_leaves_no_policy(tmp_path: Path) -> None:
    def stop(_name: str, done: int, _total: int, _loss: float | None) -> None:
        if done == 2:
            raise StopRequestedError

    with pytest.raises(StopRequestedError):
        text_policy(tmp_path, TINY, stop)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_no_held_out_table_is_shown_and_every_word_may_name_a_table() -> None:
    sessions = warm_up_sessions(TextRecipe(num_entries=400))
    names, headers = set(), set()
    for session in sessions:
        found = re.search(r"this table is (\w+), and .* table are (.*)\.", session.instruction)
        assert found is not None
        names.add(found[1])
        headers.add(found[2])

    def of_split(split: str) -> set[str]:
        return {
            ", ".join(column_names(theme))
            for theme in THEMES
            if split_of_table(theme.table) == split
        }

    assert headers <= of_split("train")
    assert headers & (of_split("held_out") - of_split("train")) == set()
    # A word that never names a table would be taught never to be one.
    assert {name for theme in HELD_OUT for name in (theme.table, theme.noun)} <= {*new_names()}
    assert len(names) > 100


def test_as_many_rounds_have_a_mistake_as_the_recipe_says() -> None:
    def share(noise: float, num_entries: int = 22) -> float:
        sessions = warm_up_sessions(TextRecipe(num_entries=num_entries, noise=noise))
        said = [session.rounds[0].completion for session in sessions]
        wrong = [item == UNREADABLE or "Answer" in item or "SELECT 0" in item for item in said]
        return sum(wrong) / len(wrong)

    assert share(0.0) == 0
    assert share(1.0) == 1
    # Of some 60 sessions; a standard error is 0.055.
    assert 0.08 < share(0.25, 88) < 0.42


def test_a_renamed_entry_asks_for_the_same_rows_of_another_table() -> None:
    random = Random(0)
    for entry in generate(22, seed=1):
        other = renamed(entry, new_names(), random)
        assert other.table_info is not None
        assert entry.table_info is not None
        name = other.table_info.name
        assert name != entry.table_info.name
        assert name not in {column.name for column in other.table_info.columns}
        session = demonstrate(other)
        assert name in session.rounds[0].completion
        assert entry.table_info.name not in task_of(other).description.split()
        assert (other.answer_direct, other.table_info.rows) == (
            entry.answer_direct,
            entry.table_info.rows,
        )


def test_the_plan_has_every_step_with_its_rate() -> None:
    steps = warm_up_plan(TINY).steps
    assert [step.batch_size for step in steps] == [4, 4, 4]
    assert {step.stage for step in steps} == {"imitation"}
    # A twentieth of the peak; then the cosine's fall.
    assert steps[0].learning_rate == pytest.approx(3e-3 / 20)
    recipe = warm_up_plan(TINY).recipe("sql-demo-x")
    assert (recipe.batch_size, recipe.max_turns, recipe.box_type) == (4, 3, "database")


def test_entries_of_a_split_are_about_its_tables_alone() -> None:
    config = read_config({"environment": "dbbench", "seed": 4})
    assert isinstance(config.tasks, dict)
    assert isinstance(config.eval_tasks, dict)
    assert (config.tasks["split"], config.eval_tasks["split"]) == ("train", "held_out")
    assert config.tasks["seed"] == config.eval_tasks["seed"] == 4
    themes = [theme for theme in THEMES if split_of_table(theme.table) == "held_out"]
    assert {split_of(item) for item in generate(10, 4, themes=themes)} == {"held_out"}


def test_an_environment_without_a_built_in_policy_says_so() -> None:
    config = read_config({"environment": "text_to_sql", "tasks": {"source_type": "demo_all"}})
    with pytest.raises(UsageError, match="there is no policy 'demo' for environment text_to_sql"):
        built_policy(config)
