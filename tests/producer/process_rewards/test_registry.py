"""Rewards by name: ours, and a user's files as RewardSQL's README shows them."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from producer.algorithms.core_functions import (
    call_core_function,
    choose_core_function,
    named_core_function,
)
from producer.process_rewards import registry as registry_module
from producer.process_rewards.registry import (
    Registry,
    public_names,
    register_reward_function,
    register_reward_manager,
    registry,
)
from producer.process_rewards.row_sets import sql_reward_function
from producer.process_rewards.step_and_outcome import RewardBatch, StepAndOutcomeManager
from producer.process_rewards.user_module import load_user_module
from producer.rewards.user_module import source_sha256

# As in the README of RewardSQL's example, with a body where it has a comment.
REWARDS = """
from src.trainer.training_manager import register_reward_function

@register_reward_function("sql_reward_of_mine")
def sql_reward_function(port, db_id, question_id, solution_str, ground_truth, extra_info):
    # 实现SQL验证逻辑
    score = float(solution_str.strip() == ground_truth)
    return score

from src.trainer.training_manager import register_reward_manager
from verl import DataProto

@register_reward_manager("sql_manager_of_mine")
class SQLRewardManager:
    def __init__(self, tokenizer, num_examine, config, compute_score=None):
        self.tokenizer = tokenizer
        self.config = config
        self.compute_score = compute_score

    def __call__(self, data: DataProto):
        # 实现奖励计算逻辑
        rewards = torch.zeros_like(data.batch["responses"], dtype=torch.float32)
        for i in range(len(data)):
            item = data[i]
            response = self.tokenizer.decode(item.batch["responses"])
            rewards[i, -1] = self.compute_score(
                port=None, db_id=item.non_tensor_batch["db_id"],
                question_id=item.non_tensor_batch["index"], solution_str=response,
                ground_truth=item.non_tensor_batch["reward_model"]["ground_truth"],
                extra_info=item.non_tensor_batch.get("extra_info"))
        return rewards

import torch
"""
# As in the README of its trainer.
CORE_ALGOS = '''
import torch
from collections import defaultdict
import verl.utils.torch_functional as verl_F

def compute_custom_advantage(token_level_rewards, eos_mask, index, epsilon=1e-6):
    """自定义优势函数实现"""
    groups = defaultdict(list)
    for i in range(len(index)):
        groups[index[i].item()].append(i)
    advantages = torch.zeros_like(token_level_rewards)
    for places in groups.values():
        own = token_level_rewards[places].sum(dim=-1)
        advantages[places] = (own - own.mean())[:, None] * eos_mask[places]
    returns = advantages
    return advantages, returns
'''
TEXTS = """
from src.trainer.training_manager import register_reward_function, registry, register_core_algos

@register_reward_function("of_texts")
def my_reward_function(input_text, response_text, **kwargs):
    return float(len(input_text) + len(response_text))

@register_core_algos("my_algos")
class Algorithms:
    @staticmethod
    def compute_token_wise_advantage(token_level_rewards, eos_mask, index):
        return token_level_rewards, token_level_rewards

assert registry.get_reward_function("of_texts")
"""
CALL: dict[str, Any] = {
    "port": 5887,
    "db_id": "books",
    "question_id": 3,
    "solution_str": "SELECT 1",
    "ground_truth": "SELECT 1",
    "extra_info": None,
}


class Tokenizer:
    """A character a token."""

    def decode(self, tokens: torch.Tensor) -> str:
        return "".join(chr(token) for token in tokens.tolist() if token)


def batch_of(responses: list[str], **others: list[Any]) -> RewardBatch:
    width = max(map(len, responses))
    return RewardBatch(
        {
            "prompts": torch.ones(len(responses), 2, dtype=torch.long),
            "responses": torch.tensor(
                [[*map(ord, response.ljust(width, "\0"))] for response in responses]
            ),
            "attention_mask": torch.tensor(
                [
                    [0, 1] + [1] * len(response) + [0] * (width - len(response))
                    for response in responses
                ]
            ),
        },
        others,
    )


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_as_the_readme_shows_it_registers_both_and_leaves_no_stand_in(
    tmp_path: Path,
) -> None:
    before = {name for name in sys.modules if name.split(".")[0] in {"src", "verl"}}
    load_user_module(write(tmp_path / "rewards_of_mine.py", REWARDS))
    assert {name for name in sys.modules if name.split(".")[0] in {"src", "verl"}} == before
    function = registry.get_reward_function("sql_reward_of_mine")
    assert function(**CALL) == 1.0
    assert function(**{**CALL, "ground_truth": "SELECT 2"}) == 0.0
    manager = registry.get_reward_manager("sql_manager_of_mine")(
        tokenizer=Tokenizer(), num_examine=2, config={}, compute_score=function
    )
    data = batch_of(
        ["SELECT 1", "SELECT 2"],
        db_id=["books"] * 2,
        index=[0, 1],
        reward_model=[{"ground_truth": "SELECT 1"}] * 2,
    )
    assert manager(data).tolist() == [[0.0] * 7 + [1.0], [0.0] * 8]


def test_a_core_algos_module_as_the_readme_shows_it_is_found_by_name(tmp_path: Path) -> None:
    module = load_user_module(write(tmp_path / "custom_core_algos.py", CORE_ALGOS))
    function = named_core_function("compute_custom_advantage", public_names(module))
    rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    advantages, _ = call_core_function(function, rewards, torch.ones(3, 2), ["a", "a", "alone"])
    assert advantages.tolist() == [[0.5, 0.5], [-0.5, -0.5], [0.0, 0.0]]
    assert len(source_sha256(module)) == 64


def test_a_function_of_texts_and_a_class_of_algorithms_are_taken_too(tmp_path: Path) -> None:
    load_user_module(write(tmp_path / "texts.py", TEXTS))
    function = registry.get_reward_function("of_texts")
    assert function(**CALL) == 8.0
    assert function(**{**CALL, "extra_info": {"question": "Why?"}}) == 12.0
    names = public_names(registry.get("core algorithms", "my_algos"))
    assert choose_core_function("grpo", names) == "compute_token_wise_advantage"


def test_a_module_is_loaded_by_its_dotted_name_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples_of_mine").mkdir()
    write(tmp_path / "examples_of_mine/core_algos.py", CORE_ALGOS)
    monkeypatch.chdir(tmp_path)
    module = load_user_module("examples_of_mine.core_algos")
    assert "compute_custom_advantage" in public_names(module)


def test_a_changed_file_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    first = load_user_module(write(path, "A = 1\n"))
    second = load_user_module(write(path, "A = 22\n"))
    assert (first.A, second.A) == (1, 22)
    assert source_sha256(first) == source_sha256(second)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_at_all", "there is no module 'nowhere_at_all'"),
        ("def (", "loading it raised SyntaxError"),
        ("raise SystemExit(3)", "loading it raised SystemExit"),
        ("1 / 0", "loading it raised ZeroDivisionError"),
        (
            "from verl.utils.torch_functional import nothing_of_verl",
            "raised ImportError: cannot import name 'nothing_of_verl'",
        ),
        (
            "from src.trainer.training_manager import RLTrainingManager",
            "raised ImportError: cannot import name 'RLTrainingManager'",
        ),
        (
            "from src.trainer.training_manager import *\nregister_reward_function('')(print)",
            "raised ValueError: a reward function needs a name",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_user_module(write(tmp_path / "broken_of_mine.py", text))
    assert not [name for name in sys.modules if name.endswith("broken_of_mine")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py", "there is no file 'nowhere.py'"),
        ("no/slash", "neither a .py file nor a module's name"),
        ("", "neither a .py file"),
        ("nowhere_at_all.core", "there is no module 'nowhere_at_all'"),
    ],
)
def test_a_name_that_is_no_module_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_user_module(name)


def test_a_module_without_a_file_cannot_be_recorded() -> None:
    with pytest.raises(ValueError, match="has no source file"):
        source_sha256(ModuleType("made"))


def test_ours_are_registered_under_their_names() -> None:
    own = Registry()
    assert own.get_reward_function("sql_reward") is sql_reward_function
    assert own.get_reward_manager("step_and_outcome") is StepAndOutcomeManager


def test_a_name_that_nobody_registered_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'sql_rewrd'\. Did you mean 'sql_reward'\?"):
        registry.get_reward_function("sql_rewrd")
    with pytest.raises(ValueError, match="There are step_and_outcome"):
        Registry().get_reward_manager("x")


def test_what_is_called_otherwise_is_refused_when_it_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry_module, "registry", own := Registry())
    register_reward_function("odd")(lambda data: data)
    register_reward_manager("odd")(lambda tokenizer: tokenizer)
    with pytest.raises(ValueError, match="'odd' must take port, db_id, question_id"):
        own.get_reward_function("odd")
    with pytest.raises(ValueError, match="'odd' must take tokenizer, num_examine"):
        own.get_reward_manager("odd")
    with pytest.raises(ValueError, match="cannot be called"):
        register_reward_function("none")(None)  # type: ignore[type-var]


@pytest.fixture
def databases(tmp_path: Path) -> Path:
    (tmp_path / "books").mkdir()
    with closing(sqlite3.connect(tmp_path / "books/books.sqlite")) as connection:
        connection.executescript("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (2)")
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        ("SELECT a FROM t ORDER BY a DESC", 1.0),
        ("```sql\nSELECT DISTINCT a FROM t\n```", 1.0),
        ("SELECT a + 1 FROM t", 0.0),
        ("SELECT b FROM t", 0.0),
        ("no idea", 0.0),
        ("```sql\nDROP TABLE t\n```", 0.0),
    ],
)
def test_the_sql_reward_is_one_for_the_gold_s_rows_and_zero_on_any_error(
    databases: Path, answer: str, reward: float
) -> None:
    given = {"solution_str": answer, "ground_truth": "SELECT a FROM t"}
    for extra in ({"databases": databases}, {"database": databases / "books/books.sqlite"}):
        assert sql_reward_function(**{**CALL, **given, "extra_info": extra}) == reward


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra_info": None}, "extra_info names no database 'books'"),
        ({"db_id": "../books"}, "extra_info names no database '../books'"),
        ({"db_id": "other"}, "there is no such database"),
        ({"ground_truth": "SELECT x FROM y"}, "the gold cannot be executed"),
    ],
)
def test_what_is_no_fault_of_the_answer_is_zero_and_logged(
    databases: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any], message: str
) -> None:
    given = {**CALL, "extra_info": {"databases": databases}, **change}
    assert sql_reward_function(**given) == 0.0
    assert message in caplog.text or "No such file" in caplog.text
