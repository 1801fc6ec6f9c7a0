"""Agent-PEFT's recipe end to end, in the shape of its documents: generate, prepare, train."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from producer.agents.dbbench.data.layout import read_entries
from producer.cli import cli
from producer.commands.given_fields import read_config_file
from producer.config import check_effects, read_config
from producer.errors import UsageError
from producer.rewards import Outcome
from tests.support.checkpoints import write_checkpoint
from tests.support.paths import ROOT

RECIPE = ROOT / "tests" / "data" / "recipes" / "agent_peft"
CONFIG = (
    "configs/assignments/experiments/qwen25_7b_instruct/instance/db_bench/instance/rl_training.yaml"
)
SKILLS = "insert,select"
"""Of entries that need one skill alone."""


def invoke(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert result.exception is None, result.output
    return result.stdout


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What `generate` and `prepare` write under the recipe's flags."""
    folder = tmp_path / "data"
    entries = folder / "generated" / "entry_dict.json"
    invoke("data", "generate", "--num_samples", "8", "--skills", SKILLS, "--output_path",
           str(entries))  # fmt: skip
    invoke(
        *("data", "prepare", "--input_data_path", str(entries)),
        *("--output_path", str(folder / "single_skill_tasks.json")),
        *("--min_tasks_per_skill", "1"),
    )
    return folder


def test_prepare_writes_the_tasks_of_each_skill_and_they_are_read_again(data: Path) -> None:
    written = json.loads((data / "single_skill_tasks.json").read_text())
    assert {
        skill for group in written.values() for item in group for skill in item["skill_list"]
    } == {*written}
    read = read_entries(data / "single_skill_tasks.json")
    assert len(read) == sum(map(len, written.values())) > 0
    assert {entry.skills for entry in read} == {(skill,) for skill in written}
    by_instruction = {
        read_entry.instruction: read_entry for read_entry in read_entries(data / "generated")
    }
    for entry in read:
        original = by_instruction[entry.instruction]
        assert (entry.sql, entry.table_info) == (original.sql, original.table_info)


def test_the_recipes_assignment_trains_on_every_entry(data: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    write_checkpoint(policy, "qwen2")
    shutil.copytree(RECIPE, tmp_path / "recipe")
    for path in (tmp_path / "recipe").rglob("*.yaml"):
        text = path.read_text().replace("DATA/", f"{data}/").replace("POLICY", str(policy))
        path.write_text(text.replace("OUTPUT", str(tmp_path / "outputs")))
    num = len(read_entries(data / "single_skill_tasks.json"))
    summary = json.loads(
        invoke(
            *("run", "--config", str(tmp_path / "recipe" / CONFIG), "--no-monitor", "--json"),
            *("--max_tokens", "8", "--device", "cpu", "--eval_episodes", "2"),
        ).splitlines()[-1]
    )
    assert (summary["status"], summary["steps"]) == ("completed", num)
    assert summary["eval_temperature"] == 0
    (output,) = (tmp_path / "outputs").iterdir()
    assert re.fullmatch(r"\d{4}(-\d\d){5}", output.name)
    assert {"sessions", "checkpoints", "logs"} <= {path.name for path in output.iterdir()}
    sessions = sorted((output / "sessions" / "generation-0").iterdir())
    assert len(sessions) == num
    (session,) = map(json.loads, sessions[0].read_text().splitlines())
    assert session["reward"] in {1.0, -0.1, -0.3}
    assert session["responses"]
    assert "step 1/" in (output / "logs" / "train.log").read_text()


def outcome(*, success: bool, completed: bool, cut: bool) -> Outcome:
    return Outcome(
        success=success,
        num_turns=3,
        max_turns=3,
        attempted_completion=completed,
        reported_success=None,
        ran_out_of_turns=cut,
        ran_out_of_time=False,
        parse_errors=0,
        tool_name_errors=0,
        tool_arg_errors=0,
        runtime_errors=0,
        num_actions=3,
        repeated_actions=0,
        num_tokens=9,
        turn_first_success=None,
        task_id="t",
    )


def test_the_rewards_of_a_session_are_free_numbers() -> None:
    config = read_config(
        {"environment": "dbbench", "model_name": "oracle", "reward": "dbbench"}
        | {"reward_correct": 2.5, "reward_incorrect": 0.0, "reward_timeout": -4.0}
    )
    reward = config.make_reward()
    assert reward(outcome(success=True, completed=True, cut=False)) == 2.5
    assert reward(outcome(success=False, completed=True, cut=False)) == 0.0
    assert reward(outcome(success=True, completed=False, cut=True)) == -4.0, "limit reached"


def test_the_rewards_of_a_session_are_refused_with_another_reward() -> None:
    given = {"model_name": "oracle", "reward_correct": 2.0}
    with pytest.raises(UsageError, match="reward_correct: only for the reward dbbench"):
        check_effects(read_config(given), given)


def test_rewards_of_any_value_are_taken_from_the_callback_times_its_weight(
    data: Path, tmp_path: Path
) -> None:
    shutil.copytree(RECIPE, tmp_path / "recipe")
    callback = tmp_path / "recipe/configs/components/callbacks/rl_training_callback.yaml"
    text = callback.read_text().replace("reward_weight: 1.0", "reward_weight: 0.5")
    callback.write_text(text.replace("reward_incorrect: -0.1", "reward_incorrect: 0"))
    tasks = tmp_path / "recipe/configs/components/tasks/db_bench_single_skill.yaml"
    tasks.write_text(tasks.read_text().replace("DATA/", f"{data}/"))
    fields = read_config_file(tmp_path / "recipe" / CONFIG).fields
    assert (fields["reward_correct"], fields["reward_incorrect"]) == (0.5, 0.0)
    assert fields["reward_timeout"] == -0.15


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prepare", "--output_path", "x.json"), "give the entries either as"),
        (("prepare", "a", "--input_data_path", "b", "--output", "c"), "give the entries either as"),
        (("prepare", "a", "--output", "c"), "--single-skill is required"),
    ],
)
def test_a_wrong_call_of_prepare_is_a_usage_error(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["data", *words])
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
