"""What is given to a training that goes on is judged beside the settings that it was begun with."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from producer.config import CHANGEABLE, OF_ONE_PROCESS, RunConfig, read_config, read_continued
from producer.config.reward import module_hash
from producer.emit import Emitter
from producer.errors import UsageError
from producer.training.asked_config import read_asked
from schemas import ids
from schemas.catalogue import stream
from schemas.installation import Installation, read_installation
from schemas.training import TrainingCreated
from tests.support.begun_configs import BEGUN, SHA256
from tests.support.small_run import small

ELSEWHERE = {"training_name", "log_path", "log_dir", "baseline_only", "behavior_if_log_dir_exists"}
"""Fields that name a training, or say what becomes of it."""
DEPENDENT: dict[str, tuple[str, Any]] = {
    "model_name": ("weights", "other/policy"),
    "environment": ("sql", "android"),
    "group_size": ("dbbench", 4),
    "wandb_name": ("oracle", "other"),
    "judge_model": ("judged", "other"),
    "clip_ratio_low": ("weights", 0.15),
    "clip_ratio_high": ("weights", 0.35),
    "dual_clip": ("weights", 4.0),
    "importance_cap": ("weights", 3.0),
    "kl_estimator": ("weights", "k2"),
    "kl_in": ("weights", "advantage"),
    "gae_gamma": ("values", 0.5),
    "gae_lambda": ("values", 0.5),
    "value_learning_rate": ("values", 0.2),
    "value_clip": ("values", 0.5),
    "value_coef": ("values", 0.5),
    "advantage": ("sql", "rloo"),
    "prime_learning_rate": ("sql", 0.5),
    "prime_beta": ("sql", 0.5),
    "prime_process_coef": ("sql", 0.5),
    "prime_outcome_coef": ("sql", 0.5),
    "baseline": ("moving", "group"),
    "baseline_momentum": ("moving", 0.6),
    "dbbench_database": ("dbbench", "mysql://u@other:1"),
    "rollouts_by": ("oracle", "trainer"),
    "env_url": ("server", "ws://other:1"),
    "env_actions": ("server", "text"),
    "env_screen": ("server", "320x420"),
    "box_type": ("gbox", "android"),
    "adb_serials": ("adb", ["three"]),
    "adb_server": ("adb", "h:2"),
    "skill_sequence": ("dbbench", "insert,select"),
    "steps_per_skill": ("dbbench", 3),
    "replay_share": ("dbbench", 0.25),
    "process_reward_model": ("processes", "/"),
    "rm_coef": ("processes", 0.25),
    "verifier_coef": ("processes", 0.25),
    "core_function": ("processes", "other"),
    "core_algos": ("processes", "other.py"),
    "core_algos_sha256": ("processes", "f" * 64),
    "reward_module": ("processes", "other.py"),
    "reward_module_sha256": ("processes", "f" * 64),
    "reward_function": ("processes", "other"),
    "reward_manager": ("processes", "other"),
    "reward_model_sees_results": ("processes", False),
    "reward_port": ("processes", 7001),
    "min_learning_rate_ratio": ("passes", 0.2),
    "reward_sha256": ("own_reward", "f" * 64),
    "provider": ("tinker", "in_process"),
    "adapters_dir": ("weights", "/other"),
}
"""Field whose validity depends on others -> a training that has it, another value of its own."""


def rewarded(_outcome: object) -> float:
    """A reward function of the user's."""
    return 1.0


@pytest.fixture
def begun(tmp_path: Path) -> dict[str, dict[str, JsonValue]]:
    """What each of `BEGUN` records, with a folder and a module of the test's."""
    own = tmp_path / "own.py"
    own.write_text("def mine():\n    pass\n")
    adapted = {
        "HERE": str(tmp_path),
        "HERE/own.py": str(own),
        SHA256: module_hash("", str(own), None),
    }

    def filled(value: Any) -> Any:
        return adapted.get(value, value) if isinstance(value, str) else value

    return {
        name: read_config({field: filled(value) for field, value in fields.items()}).recorded()
        for name, fields in BEGUN.items()
    }


Begun = dict[str, dict[str, JsonValue]]


def test_every_field_is_tried(begun: Begun) -> None:
    tried = {
        name
        for config in begun.values()
        for name, value in config.items()
        if value != RunConfig.model_fields[name].default
    }
    assert RunConfig.model_fields.keys() - tried == ELSEWHERE


@pytest.mark.parametrize("name", BEGUN)
def test_whatever_a_training_was_begun_with_may_be_given_again(begun: Begun, name: str) -> None:
    recorded = begun[name]
    given = {field: value for field, value in recorded.items() if field not in OF_ONE_PROCESS}
    for field, value in given.items():
        config = read_continued({field: value}, recorded, overwrite=False)
        assert (field, config.recorded()) == (field, recorded)
    assert read_continued(given, recorded, overwrite=False).recorded() == recorded


def test_fields_that_depend_on_others_are_those_tried_below(begun: Begun) -> None:
    dependent = set()
    for config in begun.values():
        for field, value in config.items():
            try:
                read_config({field: value})
            except UsageError:
                dependent.add(field)
    assert dependent == DEPENDENT.keys()


@pytest.mark.parametrize("field", DEPENDENT)
def test_another_value_is_a_change_and_not_a_mistake(begun: Begun, field: str) -> None:
    name, other = DEPENDENT[field]
    assert begun[name][field] != other
    if field in CHANGEABLE:
        config = read_continued({field: other}, begun[name], overwrite=False)
        assert config.recorded()[field] == other
        assert config.explicit == {field}
        return
    message = f"^this training was begun with other settings: {field}: "
    with pytest.raises(UsageError, match=message):
        read_continued({field: other}, begun[name], overwrite=False)


@pytest.mark.parametrize(
    ("name", "given", "follows", "value"),
    [
        ("dbbench", {"steps_per_skill": 3}, "num_steps", 6),
        ("dbbench", {"steps_per_skill": 3, "num_steps": 5}, "num_steps", 5),
        ("dbbench", {"skill_sequence": ["delete"]}, "num_steps", 2),
        ("dbbench", {"oracle_noise": 0.5}, "num_steps", 4),
        ("weights", {"lora_rank": 8}, "lora_alpha", 16.0),
        ("weights", {"lora_rank": 4}, "lora_alpha", 9.0),
        ("own_reward", {"reward": "binary"}, "reward_sha256", None),
        ("processes", {"reward_module": None}, "reward_module_sha256", None),
    ],
)
def test_a_new_generation_fills_in_what_follows_from_what_is_given(
    begun: Begun, tmp_path: Path, name: str, given: dict[str, Any], follows: str, value: Any
) -> None:
    if "reward_module" in given:
        other = tmp_path / "other.py"
        other.write_text("other = 1\n")
        given, value = {"reward_module": str(other)}, module_hash("", str(other), None)
        assert value != begun[name][follows]
    config = read_continued(given, begun[name], overwrite=True)
    assert config.recorded()[follows] == value


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(tmp_path / "home")})


def record(installation: Installation, config: dict[str, JsonValue], **changes: Any) -> None:
    """The beginning of training `t` in the log, and nothing else."""
    whole = read_config({**config, "training_name": "t"})
    created = TrainingCreated(
        run_name="t",
        kind="rl",
        recipe=whole.recipe(Path("/runs/t")),
        total_steps=1,
        config=whole.recorded(),
    )
    with Emitter.open(installation) as emitter:
        emitter.stream(stream("training", ids.training_id("t"))).emit(
            created.model_copy(update=changes)
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps_per_skill": 3}, "begun with other settings: steps_per_skill: 2 -> 3"),
        ({"replay_share": 0.25, "group_size": 1}, "begun with other settings: .*replay_share: 0.5"),
        ({"rm_coef": 2.0}, "begun with other settings: rm_coef: 1.0 -> 2.0"),
        ({"steps_per_skill": 0}, "^steps_per_skill: 0 is out of range"),
        ({"steps_per_skil": 3}, "  steps_per_skil: there is no such field."),
    ],
)
def test_the_answer_is_about_the_training_that_the_log_knows(
    begun: Begun, installation: Installation, given: dict[str, Any], message: str
) -> None:
    """There is no folder of it: only the log knows, as on another machine."""
    record(installation, begun["dbbench"])
    with pytest.raises(UsageError, match=message):
        read_asked({"training_name": "t", **given}, installation)


def test_what_it_has_already_and_what_may_change_continue_it(
    begun: Begun, installation: Installation
) -> None:
    record(installation, begun["dbbench"])
    given = {"training_name": "t", "steps_per_skill": 2, "dbbench_database": "mysql://u@other:1"}
    config = read_asked(given, installation)
    assert config.explicit == given.keys()
    assert config.dbbench_database == "mysql://u@other:1"
    assert (config.environment, config.skill_sequence) == ("dbbench", ("select", "insert"))


def test_a_new_generation_may_have_other_values(begun: Begun, installation: Installation) -> None:
    record(installation, begun["dbbench"])
    given = {"training_name": "t", "behavior_if_log_dir_exists": "overwrite", "replay_share": 0.25}
    assert read_asked(given, installation).replay_share == 0.25
    with pytest.raises(UsageError, match=r"^reward_sha256: has no effect on the reward dbbench"):
        read_asked({**given, "reward_sha256": SHA256}, installation)


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
def test_a_setting_of_another_release_that_is_off_is_passed_over(value: JsonValue) -> None:
    recorded = small().recorded()
    config = read_continued({}, {**recorded, "replay_sessions": value}, overwrite=False)
    assert config.recorded() == recorded


def test_a_setting_of_another_release_that_is_used_is_named() -> None:
    recorded = {**small().recorded(), "replay_sessions": 3}
    with pytest.raises(UsageError) as caught:
        read_continued({}, recorded, overwrite=False)
    assert str(caught.value) == (
        "another release of cua-train recorded this training, with a setting that this one does"
        " not have: replay_sessions 3; use that release for it, or begin another training"
    )


@pytest.mark.parametrize("changes", [{"run_name": "u"}, {"kind": "sft"}])
def test_another_training_says_nothing_about_it(
    begun: Begun, installation: Installation, changes: dict[str, str]
) -> None:
    name = "u" if "run_name" in changes else "t"
    record(installation, begun["dbbench"], kind=changes.get("kind", "rl"))
    with pytest.raises(UsageError, match=r"^steps_per_skill: only with environment dbbench"):
        read_asked({"training_name": name, "steps_per_skill": 3}, installation)


def test_a_mistake_on_a_machine_without_a_log_makes_none(installation: Installation) -> None:
    with pytest.raises(UsageError, match=r"^steps_per_skill: only with environment dbbench"):
        read_asked({"training_name": "t", "steps_per_skill": 3}, installation)
    assert not installation.home.exists()


def test_a_kafka_that_is_away_leaves_the_first_answer_and_nothing_else(tmp_path: Path) -> None:
    environ = {
        "CUA_HOME": str(tmp_path / "home"),
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    }
    with pytest.raises(UsageError, match=r"^steps_per_skill: only with environment dbbench"):
        read_asked({"training_name": "t", "steps_per_skill": 3}, read_installation(environ))
    assert list(tmp_path.iterdir()) == []
