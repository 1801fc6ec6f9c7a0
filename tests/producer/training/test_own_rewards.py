"""Reward functions, managers and core algorithms of the user's in a run, as RewardSQL has them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from producer.config import read_config
from producer.errors import UsageError
from producer.policy.policy import Completion, SampledTokens
from producer.resume import resume_state
from producer.rewards import RewardError
from producer.rollouts.requests import CompletionReward, StepScores
from producer.task import Task
from producer.tasks.sources import load_tasks
from producer.training.loaded import load_run_tasks
from producer.training.own_rewards import RewardCompletion, find_own_rewards, rewarding_with
from producer.training.run import run
from schemas.completion import StepScore
from schemas.installation import Installation
from tests.support.reading import ReadLog, of_type

torch = pytest.importorskip("torch")

REWARDS = """
import torch
from src.trainer.training_manager import register_reward_function, register_reward_manager
from verl import DataProto

@register_reward_function("by_length")
def by_length(port, db_id, question_id, solution_str, ground_truth, extra_info):
    assert extra_info["database"].endswith("shop.sqlite") and db_id == "shop"
    return len(solution_str) / 1000

@register_reward_manager("by_place")
class ByPlace:
    def __init__(self, tokenizer, num_examine, config, compute_score=None):
        self.tokenizer, self.config, self.compute_score = tokenizer, config, compute_score

    def __call__(self, data: DataProto):
        rewards = torch.zeros_like(data.batch["responses"], dtype=torch.float32)
        for i in range(len(data)):
            item = data[i]
            text = self.tokenizer.decode(item.batch["responses"])
            score = self.compute_score(
                port=None, db_id=item.non_tensor_batch["db_id"],
                question_id=item.non_tensor_batch["index"], solution_str=text,
                ground_truth=item.non_tensor_batch["reward_model"]["ground_truth"],
                extra_info=item.non_tensor_batch.get("extra_info"))
            rewards[i] = torch.arange(rewards.shape[1]) * self.config.verifier.reward_coef
            rewards[i, -1] += score
        return rewards
"""
FUNCTION = REWARDS.partition('@register_reward_manager("by_place")')[0]
ALGOS = """
def compute_own_advantage(token_level_rewards, eos_mask, index):
    return token_level_rewards * eos_mask, token_level_rewards
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two questions about one database, in BIRD's layout."""
    folder = tmp_path / "data"
    database = folder / "train_databases/shop/shop.sqlite"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);")
    records = [
        {
            "question_id": at,
            "db_id": "shop",
            "question": f"Question {at}?",
            "SQL": "SELECT a FROM t",
        }
        for at in range(2)
    ]
    (folder / "train.json").write_text(json.dumps(records))
    return folder


def module(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def given(data: Path, **more: Any) -> dict[str, Any]:
    return {
        "model_name": "oracle",
        "environment": "text_to_sql",
        "tasks": {"source_type": "text_to_sql", "path": str(data)},
        "training_name": "own",
        "num_steps": 1,
        "groups_per_batch": 2,
        "group_size": 2,
        "max_turns": 1,
        "eval_every": 0,
        "eval_episodes": 2,
        "skip_baseline": True,
        **({} if "model_name" in more else {"oracle_noise": 0.0}),
        **more,
    }


def finished(read_log: ReadLog) -> list[dict[str, Any]]:
    return of_type(read_log(), "rollout.finished")


def test_a_reward_function_of_the_users_gives_the_rollouts_reward(
    installation: Installation, read_log: ReadLog, data: Path, tmp_path: Path
) -> None:
    """The oracle answers with the gold in a block: 26 characters; success is executed still."""
    path = module(tmp_path, "rewards.py", FUNCTION)
    run(read_config(given(data, reward_module=path)), installation=installation)
    ended = finished(read_log)
    assert {item["reward"] for item in ended} == {len("```sql\nSELECT a FROM t\n```") / 1000}
    assert all(item["task_success"] for item in ended)
    folder = installation.runs_dir / "own"
    recorded = resume_state.read_run_config(folder)
    assert len(str(recorded["reward_module_sha256"])) == 64


def test_a_manager_gives_tokens_their_rewards_and_a_core_function_of_the_users_reads_them(
    installation: Installation, read_log: ReadLog, data: Path, tmp_path: Path
) -> None:
    from producer.text_policy.build import TextPolicySize, build_text_policy

    torch.set_num_threads(1)
    size = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)
    build_text_policy(tmp_path / "policy", ["SELECT a FROM t Question"] * 5, 0, size)
    config = read_config(
        given(
            data,
            model_name=str(tmp_path / "policy"),
            reward_module=module(tmp_path, "rewards.py", REWARDS),
            core_algos=module(tmp_path, "algos.py", ALGOS),
            core_function="compute_own_advantage",
            verifier_coef=2.0,
            remove_constant_reward_groups=False,
            max_tokens=4,
            device="cpu",
        )
    )
    run(config, installation=installation)
    steps = [item for item in finished(read_log) if "token_rewards" in item["summary"]]
    assert len(steps) >= 4
    for step in steps:
        tokens = step["summary"]["token_rewards"]
        assert len(tokens) == step["num_tokens"]
        assert tokens[:-1] == [2.0 * at for at in range(len(tokens) - 1)]
        assert step["reward"] == pytest.approx(sum(tokens))
        assert tokens[-1] > 2.0 * (len(tokens) - 1)
    samples = [
        sample
        for event in read_log()
        if event["type"] == "cua.step.samples_chosen"
        for sample in event["data"]["samples"]
    ]
    by_reward = {step["reward"]: step["summary"]["token_rewards"] for step in steps}
    assert samples
    for sample in samples:
        tokens = by_reward[sample["reward"]]
        assert sample["advantage"] == pytest.approx(sum(tokens) / len(tokens))


def test_a_file_that_changed_does_not_continue_a_training(data: Path, tmp_path: Path) -> None:
    path = module(tmp_path, "rewards.py", FUNCTION)
    config = read_config(given(data, reward_module=path))
    module(tmp_path, "rewards.py", FUNCTION.replace("1000", "10"))
    changed = given(data, reward_module=path, reward_module_sha256=config.reward_module_sha256)
    with pytest.raises(UsageError, match=r"reward_module_sha256: .*rewards.py has changed"):
        read_config(changed)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("X = 1", {}, "registers neither a reward function nor a reward manager"),
        (
            FUNCTION + FUNCTION.replace("by_length", "other"),
            {},
            "reward_function: the module registers by_length, other; choose one",
        ),
        (FUNCTION, {"reward_function": "nobody"}, "there is no reward function 'nobody'"),
        (REWARDS, {}, "reward_manager: the policy `oracle` has no tokens"),
        (
            FUNCTION.replace("port, db_id,", "port,"),
            {},
            "reward_function: reward function 'by_length' must take port, db_id",
        ),
    ],
)
def test_what_a_module_lacks_is_said_before_anything_is_recorded(
    data: Path, tmp_path: Path, text: str, more: dict[str, Any], message: str
) -> None:
    path = module(tmp_path, "rewards.py", text)
    with pytest.raises(UsageError, match=message):
        find_own_rewards(read_config(given(data, reward_module=path, **more)))


def test_a_completion_about_a_database_that_changed_is_not_rewarded(
    data: Path, tmp_path: Path
) -> None:
    """Nothing is asked: without the database every completion would be worth 0."""
    path = module(tmp_path, "rewards.py", FUNCTION)
    config = read_config(given(data, reward_module=path))
    task = load_tasks({"source_type": "text_to_sql", "path": str(data)})[0]
    reward = rewarding_with(config, None)
    assert reward is not None
    completion = Completion("SELECT a FROM t", (), None)
    assert reward(task, completion, None) == CompletionReward(0.015)
    with closing(sqlite3.connect(data / "train_databases/shop/shop.sqlite")) as connection:
        connection.executescript("INSERT INTO t VALUES (3)")
    with pytest.raises(RewardError, match="'shop' is gone, or is not as it was recorded"):
        reward(task, completion, None)


def test_a_reward_that_raises_on_every_gold_is_refused_before_anything_is_recorded(
    installation: Installation, data: Path, tmp_path: Path
) -> None:
    text = FUNCTION.replace("return len(solution_str) / 1000", "return 1 / 0")
    config = read_config(given(data, reward_module=module(tmp_path, "rewards.py", text)))
    place = r"ZeroDivisionError: division by zero \(\S+rewards\.py line 9, in by_length\)"
    with pytest.raises(UsageError, match=rf"^reward_function: .* raised {place}; it was tried "):
        run(config, installation=installation)
    assert not installation.local_log_path.exists()


def test_a_reward_that_raises_fails_its_attempt_and_names_the_error(
    installation: Installation,
    read_log: ReadLog,
    data: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = FUNCTION.replace("return len(solution_str) / 1000", "return 1 / question_id")
    path = module(tmp_path, "rewards.py", text)
    config = read_config(given(data, reward_module=path, failure_policy="min_viable_group"))
    run(config, installation=installation)
    failed = of_type(read_log(), "rollout.failed")
    assert {item["error_type"] for item in failed} == {"reward"}
    assert "ZeroDivisionError" in failed[0]["error_message"]
    told = [message for message in caplog.messages if failed[0]["error_message"] in message]
    assert len(told) < len(failed), "once for a step and for an evaluation"
    assert told[0].startswith("rollout own/g0/step-1/group-")
    assert {item["reward"] for item in finished(read_log)} == {1.0}


BODIES = [
    ("return 'right'", "by_length returned 'right'; it must return a finite number"),
    ("return float('nan')", "by_length returned nan; it must return a finite number"),
    ("return [0.5, 0.5]", r"by_length returned \[0.5, 0.5\]; it must return a finite number"),
    ("return torch.ones(2)", r"by_length returned tensor\(.*; it must return a finite number"),
    ("raise SystemExit(0)", "by_length raised SystemExit: 0"),
    ("threading.Event().wait(60)", "by_length did not return within 0.2 s"),
]
MANAGER = """
import torch
from src.trainer.training_manager import register_reward_manager

@register_reward_manager("marks")
class Marks:
    def __init__(self, tokenizer, num_examine, config, compute_score=None):
        MADE

    def __call__(self, data):
        return RETURNED
"""


def rewarding(config: dict[str, Any]) -> RewardCompletion:
    found = rewarding_with(read_config(config), SimpleNamespace(tokenizer=None))
    assert found is not None
    return found


def completed(data: Path) -> tuple[Task, Completion]:
    """The first question and an answer of five tokens."""
    task = load_run_tasks(read_config(given(data))).tasks[0]
    tokens = SampledTokens(None, (1, 2), 0, (3, 4, 5, 6, 7), (0.0,) * 5, "stop")
    return task, Completion("SELECT a FROM t", (), tokens)


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_a_function_that_gives_no_number_fails_the_attempt_and_is_named(
    data: Path, tmp_path: Path, body: str, message: str
) -> None:
    text = FUNCTION.replace("return len(solution_str) / 1000", body)
    path = module(tmp_path, "rewards.py", f"import threading\n{text}")
    limit_s = 0.2 if "wait" in body else 60.0
    reward = rewarding(given(data, reward_module=path, max_turn_time_seconds=limit_s))
    with pytest.raises(RewardError, match=f"^the reward function {message}"):
        reward(*completed(data), None)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("torch.ones(1, 4)", r"must return rewards of shape \(1, 5\), one .*; found \(1, 4\)"),
        ("torch.ones(5)", r"must return rewards of shape \(1, 5\), one .*; found \(5,\)"),
        ("[0.0] * 5", r"must return rewards of shape \(1, 5\), one for each token; found list"),
        ("torch.full((1, 5), float('inf'))", "returned inf; it must return a finite number"),
        ("torch.full((1, 5), 1j)", "returned 1j; it must return a finite number"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_manager_that_does_not_reward_every_token_fails_the_attempt_and_is_named(
    data: Path, tmp_path: Path, returned: str, message: str
) -> None:
    text = MANAGER.replace("MADE", "pass").replace("RETURNED", returned)
    path = module(tmp_path, "rewards.py", text)
    reward = rewarding(given(data, model_name="some", reward_module=path))
    with pytest.raises(RewardError, match=f"^the reward manager Marks {message}"):
        reward(*completed(data), None)


def test_a_manager_that_cannot_be_made_is_a_usage_error(data: Path, tmp_path: Path) -> None:
    path = module(tmp_path, "rewards.py", MANAGER.replace("MADE", "config.nothing"))
    with pytest.raises(UsageError, match="reward_manager: making Marks raised AttributeError"):
        rewarding(given(data, model_name="some", reward_module=path))


def test_a_manager_is_told_every_step_that_has_tokens_even_of_score_0(
    data: Path, tmp_path: Path
) -> None:
    """The published manager gives tokens the score of the next mark that is not 0."""
    text = MANAGER.replace("MADE", "pass").replace("RETURNED", 'data.batch["rm_scores"]')
    path = module(tmp_path, "rewards.py", text)
    reward = rewarding(given(data, model_name="some", reward_module=path))
    steps = tuple(
        StepScore(index=at, text="a", first_token=first, last_token=last, score=score)
        for at, (first, last, score) in enumerate(
            [(0, 2, 0.0), (2, 4, 0.5), (4, 4, 1.0), (4, 5, 1.0)]
        )
    )
    found = reward(*completed(data), StepScores("prm", steps))
    assert found.tokens == pytest.approx((0.0, 0.0, 0.0, 0.5, 1.0))
    assert [token != 0 for token in found.tokens] == [False, True, False, True, True]


def test_a_core_function_that_raises_ends_the_training_with_its_name(
    installation: Installation, data: Path, tmp_path: Path
) -> None:
    from producer.text_policy.build import TextPolicySize, build_text_policy

    torch.set_num_threads(1)
    size = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)
    build_text_policy(tmp_path / "policy", ["SELECT a FROM t Question"] * 5, 0, size)
    algos = ALGOS.replace("return token_level_rewards", "index['uid']; return token_level_rewards")
    config = read_config(
        given(
            data,
            model_name=str(tmp_path / "policy"),
            core_algos=module(tmp_path, "algos.py", algos),
            core_function="compute_own_advantage",
            remove_constant_reward_groups=False,
            max_tokens=4,
            device="cpu",
        )
    )
    with pytest.raises(UsageError, match="core_function: compute_own_advantage: it raised Index"):
        run(config, installation=installation)
