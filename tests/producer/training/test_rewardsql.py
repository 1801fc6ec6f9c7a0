"""RewardSQL's reinforcement learning as its README runs it: its files, modules and flags."""

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from producer.agents.text_to_sql.data.layouts import read_questions
from producer.agents.text_to_sql.data.tasks import database_statements, question_prompt
from producer.cli import cli
from producer.process_rewards.step_results import with_results
from producer.supervised.sequences import step_texts
from producer.supervised.step_scorer import StepScorer
from schemas.installation import Installation
from tests.support.reading import ReadLog, of_type
from tests.support.text_policy import build_answering_policy, build_step_scorer

torch = pytest.importorskip("torch")
pyarrow = pytest.importorskip("pyarrow")

RECIPES = Path(__file__).parents[2] / "data/recipes/rewardsql"
# What train_verl.py does before its `main`.
TRAIN_VERL = """
import os
import sys
import argparse
from pathlib import Path
import logging

sys.path.append(str(Path(__file__).resolve().parents[2]))

from src.trainer.training_manager import (
    VERLTrainingManager,
    register_reward_manager,
    register_reward_function,
    register_core_algos
)
from examples.RewardSQL.verl.custom import CustomRewardManager, reward_func
import examples.RewardSQL.verl.core_algos


@register_reward_manager("sql_reward_manager")
class SQLRewardManager(CustomRewardManager):
    pass


@register_reward_function("sql_reward_func")
def sql_reward_function(*args, **kwargs):
    assert kwargs["port"] == 5887
    return reward_func(*args, **kwargs)


@register_core_algos("sql_core_algos")
class SQLCoreAlgos:
    @staticmethod
    def compute_grpo_process_advantage_avg_unique(*args, **kwargs):
        algos = examples.RewardSQL.verl.core_algos
        return algos.compute_grpo_process_advantage_avg_unique(*args, **kwargs)


def main():
    manager = VERLTrainingManager(config="", algorithm_type="grpo")


if __name__ == "__main__":
    main()
"""
# As custom.py: what it imports, how it reads a batch, and what it fills.
CUSTOM = """
from verl import DataProto
from verl.utils.reward_score import _default_compute_score
import torch


def reward_func(port, db_id, question_id, solution_str, ground_truth, extra_info):
    return len(solution_str) / 1000


class CustomRewardManager:
    def __init__(self, tokenizer, num_examine, config, compute_score=None) -> None:
        self.tokenizer = tokenizer
        self.compute_score = compute_score or reward_func
        self.config = config

    def verify(self, data):
        if "outcome_reward" not in data.batch:
            data.batch["outcome_reward"] = torch.zeros_like(
                data.batch["responses"], dtype=torch.float32)
        reward = torch.zeros_like(data.batch["responses"], dtype=torch.float32)
        for i in range(len(data)):
            item = data[i]
            prompt_length = item.batch["prompts"].shape[-1]
            length = item.batch["attention_mask"][prompt_length:].sum()
            score = self.compute_score(
                port=self.config.verifier.port,
                db_id=item.non_tensor_batch["db_id"],
                question_id=item.non_tensor_batch["index"],
                solution_str=self.tokenizer.decode(item.batch["responses"][:length]),
                ground_truth=item.non_tensor_batch["reward_model"]["ground_truth"],
                extra_info=item.non_tensor_batch.get("extra_info", None))
            if self.config.reward_model.rm_coef == 0:
                reward[i, length - 1] = score
            data.batch["outcome_reward"][i] = score
        data.batch["acc"] = reward
        return reward, ""

    def __call__(self, data: DataProto):
        reward_tensor = torch.zeros_like(data.batch["responses"], dtype=torch.float32)
        if "rm_scores" in data.batch.keys():
            reward_tensor += data.batch["rm_scores"]
        if hasattr(self.config, "verifier") and self.config.verifier.reward_coef != 0:
            reward_tensor += self.config.verifier.reward_coef * self.verify(data)[0]
        return reward_tensor
"""


def write_prompts(data: Path, folder: Path) -> None:
    """Verl's train.parquet and test.parquet of the questions, with paths of the databases."""
    from pyarrow import Table, parquet

    folder.mkdir(parents=True)
    for split, name in (("train", "train"), ("dev", "test")):
        questions = read_questions(data, split)  # type: ignore[arg-type]
        rows = [
            {
                "data_source": "bird",
                "prompt": [
                    {
                        "role": "user",
                        "content": question_prompt(
                            question, database_statements(question.database)
                        ),
                    }
                ],
                "ability": "sql",
                "reward_model": {"style": "rule", "ground_truth": question.sql},
                "db_id": question.db_id,
                "extra_info": {"index": question.question_id, "db_path": str(question.database)},
            }
            for question in questions
        ]
        parquet.write_table(Table.from_pylist(rows), folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rewardsql")
    build_answering_policy(folder)
    build_step_scorer(folder)
    return folder


@pytest.fixture(autouse=True)
def _working_folder(
    made: Path, installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Where RewardSQL's README has one run its commands."""
    torch.set_num_threads(1)
    folder = tmp_path / "work"
    shutil.copytree(made / "policy", folder / "checkpoints/cocte_model")
    write_prompts(made / "data", folder / "verl/dataset/full_set")
    shutil.copyfile(RECIPES / "grpo_trainer.yaml", folder / "verl/grpo_trainer.yaml")
    (folder / "train_verl.py").write_text(TRAIN_VERL)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [module for module in sys.modules if module.partition(".")[0] == "examples"]:
        del sys.modules[name]


def call(*words: str) -> Result:
    small = ("--groups-per-batch", "2", "--group-size", "4", "--num-steps", "1", "--json")
    config = ("--config", "verl/grpo_trainer.yaml", "--output_dir", "outputs/verl_train")
    return CliRunner().invoke(cli, ["sql", "rl", *config, *words, *small])


def without_wandb() -> None:
    """Where a mirror would add nothing but seconds."""
    path = Path("verl/grpo_trainer.yaml")
    text = path.read_text()
    assert "'console', 'wandb'" in text
    path.write_text(text.replace("'console', 'wandb'", "'console'"))


def test_the_files_of_its_readme_train_with_its_flags(
    read_log: ReadLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    done = call(
        *("--algorithm", "grpo", "--data_path", "verl/dataset/full_set/train.parquet"),
        *("--core_algos", "examples.RewardSQL.verl.core_algos"),
        *("--core_function", "compute_weighted_grpo_advantage"),
        *("--reward_manager", "sql_reward_manager", "--reward-module", "train_verl.py"),
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["status"], summary["steps"]) == ("completed", 1)
    assert Path("outputs/verl_train/model.safetensors").is_file()
    created = next(event["data"] for event in read_log() if event["type"] == "cua.training.created")
    config = created["config"]
    assert config["train_type"] == "full"
    assert config["core_function"] == "compute_weighted_grpo_advantage"
    assert (config["reward_port"], config["entropy_coef"]) == (5887, 0.001)
    rewards = of_type(read_log(), "rollout.finished")
    assert {reward["reward"] for reward in rewards} <= {0.0, 1.0}
    assert "ours of the same names are used" in caplog.text
    assert "not known" not in caplog.text


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("ppo", {"advantage": "gae", "core_function": None}),
        ("prime", {"advantage": "prime", "core_function": None}),
        (
            "dapo",
            {
                "core_function": "compute_grpo_process_advantage_avg_unique",
                "remove_constant_reward_groups": True,
                "clip_ratio_high": 0.2,
            },
        ),
    ],
)
def test_its_other_algorithms_train_from_the_same_file(
    read_log: ReadLog, algorithm: str, expected: dict[str, object]
) -> None:
    without_wandb()
    done = call("--algorithm", algorithm)
    assert done.exit_code == 0, done.output
    created = next(event["data"] for event in read_log() if event["type"] == "cua.training.created")
    assert {name: created["config"][name] for name in expected} == expected


def test_a_copy_of_its_modules_in_the_working_folder_comes_before_ours(read_log: ReadLog) -> None:
    """The manager of that copy gives a thousandth of the answer's length."""
    folder = Path("examples/RewardSQL/verl")
    folder.mkdir(parents=True)
    (folder / "custom.py").write_text(CUSTOM)
    (folder / "core_algos.py").write_text("import verl.utils.torch_functional as verl_F\n")
    without_wandb()
    done = call("--reward-module", "train_verl.py", "--reward_manager", "sql_reward_manager")
    assert done.exit_code == 0, done.output
    rewards = of_type(read_log(), "rollout.finished")
    assert all(0 < reward["reward"] < 1 for reward in rewards)


@pytest.mark.parametrize("enable_exreward", [True, False])
def test_with_enable_exreward_the_reward_model_reads_what_each_step_returns(
    read_log: ReadLog, made: Path, enable_exreward: bool
) -> None:
    path = Path("verl/grpo_trainer.yaml")
    text = path.read_text().replace("enable: False\n  strategy", "enable: True\n  strategy")
    text = text.replace("enable_EXreward: True", f"enable_EXreward: {enable_exreward}")
    path.write_text(text)
    shutil.copytree(made / "prm", "checkpoints/prm_model")
    without_wandb()
    done = call("--rm-coef", "1")
    assert done.exit_code == 0, done.output
    scored = [
        event["data"] for event in read_log() if event["type"] == "cua.completion.steps_scored"
    ]
    assert scored
    scorer = StepScorer.load(made / "prm", device="cpu")
    questions = [*read_questions(made / "data", "train"), *read_questions(made / "data", "dev")]
    expected = []
    for question in questions:
        prompt = question_prompt(question, database_statements(question.database))
        for item in scored:
            steps = [step["text"] for step in item["steps"]]
            shown = with_results(question.database, steps) if enable_exreward else steps
            expected.append(scorer.score_steps(prompt, shown))
    for item in scored:
        own = [step["score"] for step in item["steps"]]
        assert any(own == pytest.approx(found, abs=1e-5) for found in expected)


def test_labelled_steps_have_their_results_where_they_are_asked_for(made: Path) -> None:
    words = ["sql", "label-steps", "--model-name", "checkpoints/cocte_model", "--completions", "1"]
    words += ["--data-path", str(made / "data"), "--output", "steps.json", "--results"]
    words += ["--step-completions", "1", "--max-tokens", "60", "--seed", "1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(Path("steps.json").read_text(encoding="utf-8"))
    databases = {
        read_question.db_id: read_question.database
        for read_question in read_questions(made / "data", "train")
    }
    assert rows
    for row in rows:
        shown = with_results(databases[row["db_id"]], row["steps"])
        assert row["input"] == "".join(
            f"{step_text} и" for step_text in step_texts(row["prompt"], shown)
        )
        assert "\n-- " in row["input"]


def test_without_files_of_ones_own_the_port_is_not_used_and_ours_has_its_managers_name(
    read_log: ReadLog,
) -> None:
    without_wandb()
    assert call("--reward_manager", "sql_reward_manager").exit_code == 0
    created = next(event["data"] for event in read_log() if event["type"] == "cua.training.created")
    assert created["config"]["reward_manager"] == "sql_reward_manager"
