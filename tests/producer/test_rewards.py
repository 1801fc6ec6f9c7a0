"""Rewards: hand-computed values by name, and functions of the user's."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.config import differences, read_config
from producer.config.reward import named_reward
from producer.errors import UsageError
from producer.rewards import REWARDS, Outcome, RewardError, find_reward, score

SOLVED = Outcome(
    success=True,
    num_turns=3,
    max_turns=6,
    attempted_completion=True,
    reported_success=True,
    ran_out_of_turns=False,
    ran_out_of_time=False,
    parse_errors=0,
    tool_name_errors=0,
    tool_arg_errors=0,
    runtime_errors=0,
    num_actions=3,
    repeated_actions=0,
    num_tokens=20,
    turn_first_success=2,
    task_id="task",
)
WRONG = replace(SOLVED, success=False)
OUT_OF_TURNS = replace(WRONG, attempted_completion=False, num_turns=6, ran_out_of_turns=True)
OUT_OF_TIME = replace(WRONG, attempted_completion=False, ran_out_of_time=True)
ERRORS: dict[str, Any] = {
    "parse_errors": 1,
    "tool_name_errors": 1,
    "tool_arg_errors": 1,
    "runtime_errors": 1,
}


@pytest.mark.parametrize(
    ("name", "outcome", "expected"),
    [
        ("binary", SOLVED, 1.0),
        ("binary", replace(SOLVED, **ERRORS), 1.0),
        ("binary", WRONG, 0.0),
        ("completion", SOLVED, 1.0),
        ("completion", WRONG, 0.1),
        ("completion", OUT_OF_TURNS, 0.0),
        ("efficiency", SOLVED, 1 - 0.06),
        ("efficiency", replace(SOLVED, **ERRORS), 1 - 0.06 - 0.4),
        ("efficiency", OUT_OF_TURNS, -0.12 - 0.5),
        ("efficiency", OUT_OF_TIME, -0.06 - 0.5),
        ("dbbench", SOLVED, 1.0),
        ("dbbench", WRONG, -0.1),
        ("dbbench", OUT_OF_TURNS, -0.3),
        ("dbbench", OUT_OF_TIME, -0.3),
        # The table is right, but the agent never answered.
        ("dbbench", replace(OUT_OF_TURNS, success=True), -0.3),
        # Neither operation nor answer ends the session, in the last round too.
        ("dbbench", replace(OUT_OF_TURNS, parse_errors=1), -0.1),
        ("dbbench", replace(OUT_OF_TIME, parse_errors=1, success=True), -0.1),
        ("comprehensive", SOLVED, 2.5),
        ("comprehensive", replace(SOLVED, num_turns=0), 3.0),
        ("comprehensive", replace(SOLVED, runtime_errors=2, repeated_actions=1), 2.5 - 0.2 - 0.05),
        ("comprehensive", WRONG, -0.5),
        ("comprehensive", OUT_OF_TURNS, -1.0),
        ("comprehensive", replace(WRONG, tool_arg_errors=3), -1.5),
        ("comprehensive", replace(WRONG, tool_arg_errors=1, tool_name_errors=1), -1.8),
        ("comprehensive", replace(WRONG, **ERRORS), -2.0),
        ("comprehensive", replace(WRONG, tool_arg_errors=1, repeated_actions=2), -1.6),
        ("comprehensive", replace(WRONG, parse_errors=1, repeated_actions=5), -2.0),
    ],
)
def test_a_reward_by_name(name: str, outcome: Outcome, expected: float) -> None:
    assert named_reward(name)(outcome) == pytest.approx(expected)


counts = st.integers(0, 50)


@given(st.booleans(), st.booleans(), st.integers(1, 50), st.tuples(*[counts] * 5))
def test_comprehensive_stays_between_minus_2_and_3(
    success: bool, attempted: bool, turns: int, errors: tuple[int, ...]
) -> None:
    names = ("parse_errors", "tool_name_errors", "tool_arg_errors", "runtime_errors")
    named: dict[str, Any] = dict(zip(names, errors, strict=False))
    outcome = replace(
        SOLVED,
        success=success,
        attempted_completion=attempted,
        num_turns=turns,
        max_turns=50,
        repeated_actions=errors[4],
        **named,
    )
    assert -2 <= REWARDS["comprehensive"](outcome) <= 3


def test_costs_come_off_any_reward() -> None:
    outcome = replace(WRONG, parse_errors=1, tool_arg_errors=1)
    assert score(REWARDS["binary"], SOLVED, turn_cost=0.1) == pytest.approx(0.7)
    assert score(
        REWARDS["completion"], outcome, turn_cost=0.01, parse_error_cost=0.2
    ) == pytest.approx(0.1 - 0.03 - 0.4)


def test_a_reward_that_raises_or_gives_no_number_is_an_error_that_says_so() -> None:
    def broken(outcome: Outcome) -> float:
        return 1 / (outcome.num_turns - 3)

    with pytest.raises(RewardError, match="the reward raised ZeroDivisionError"):
        score(broken, SOLVED)
    for value in (None, "1", float("nan"), float("inf"), 1j):
        with pytest.raises(RewardError, match="it must return a finite number"):
            score(lambda _, value=value: value, SOLVED)  # type: ignore[misc]
    assert score(lambda outcome: outcome.success, SOLVED) == 1.0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`my_rewards.py` in the working folder."""
    path = tmp_path / "my_rewards.py"
    path.write_text(
        "import math\n"
        "NUMBER = 3\n"
        "def half(outcome): return outcome.success / 2\n"
        "def two(outcome, other): return 0\n"
        "async def later(outcome): return 0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.modules.pop("my_rewards", None)


def test_a_function_in_the_working_folder_is_found_and_its_file_s_hash_recorded(
    module: Path,
) -> None:
    assert find_reward("my_rewards:half")(SOLVED) == 0.5
    config = read_config({"reward": "my_rewards:half"})
    assert config.reward_sha256 == hashlib.sha256(module.read_bytes()).hexdigest()
    assert config.recorded()["reward_sha256"] == config.reward_sha256


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'right'", r"the reward my_rewards:bad returned 'right'; it must return a finite"),
        ("return float('nan')", "the reward my_rewards:bad returned nan; it must return a finite"),
        ("raise SystemExit(0)", "the reward my_rewards:bad raised SystemExit: 0"),
        ("time.sleep(60)", "the reward my_rewards:bad did not return within 0.1 s"),
    ],
)
def test_a_function_of_the_users_that_fails_is_named(module: Path, body: str, message: str) -> None:
    module.write_text(f"import time\ndef bad(outcome): {body}\n")
    limit_s = 0.1 if "sleep" in body else 60.0
    with pytest.raises(RewardError, match=message):
        score(find_reward("my_rewards:bad", limit_s), SOLVED)


def test_a_function_is_named_by_its_file_too(module: Path) -> None:
    config = read_config({"reward": f"{module}:half"})
    assert config.reward_sha256 == hashlib.sha256(module.read_bytes()).hexdigest()
    assert score(config.make_reward(), SOLVED) == score(find_reward("my_rewards:half"), SOLVED)


def test_a_training_continues_with_the_same_function_only(module: Path) -> None:
    recorded = read_config({"reward": "my_rewards:half"}).recorded()
    assert differences(recorded, read_config(recorded).recorded()) == []
    module.write_text("def half(outcome): return outcome.success / 3\n")
    sys.modules.pop("my_rewards")
    with pytest.raises(UsageError, match="reward_sha256: the file of my_rewards:half has changed"):
        read_config(recorded)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("binry", "reward: 'binry' is not one of binary, completion, efficiency, comprehensive"),
        ("binry", "Did you mean 'binary'?"),
        ("my_rewards:halve", "reward: my_rewards has no 'halve'; its functions are half, two"),
        ("my_rewards:NUMBER", "reward: my_rewards:NUMBER is no function"),
        ("my_rewards:later", "reward: my_rewards:later is no function"),
        ("my_rewards:two", "reward: my_rewards:two must take one argument, the episode's Outcome"),
        ("no_such_module:half", "reward: no_such_module: there is no module 'no_such_module'"),
        (":half", "reward: '' is neither a .py file nor a module's name; write package.module:fun"),
        ("a/b:half", "reward: 'a/b' is neither a .py file nor a module's name"),
        ("a/b.py:half", "reward: there is no file 'a/b.py'; write package.module:function"),
        ("math:sqrt", "has no source file, so what it does cannot be recorded"),
    ],
)
def test_a_reward_that_cannot_be_found_or_called_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError) as wrong:
        read_config({"reward": name})
    assert message in str(wrong.value)


@pytest.mark.parametrize(
    "source", ["raise RuntimeError('no')\n", "import sys; sys.exit(3)\n", "def half(:\n"]
)
def test_a_module_that_cannot_be_imported_is_refused(module: Path, source: str) -> None:
    module.write_text(source)
    with pytest.raises(UsageError, match="reward: my_rewards: loading it raised "):
        read_config({"reward": "my_rewards:half"})


def test_a_hash_without_a_function_of_one_s_own_is_refused() -> None:
    with pytest.raises(UsageError, match="reward_sha256: has no effect on the reward binary"):
        read_config({"reward_sha256": "0" * 64})
