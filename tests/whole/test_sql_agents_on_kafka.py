"""Both SQL agents on Kafka and PostgreSQL: killed, continued, projected, rebuilt."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from schemas.installation import read_installation
from tests.support.kafka import KafkaService
from tests.support.killed_run import run_until_killed
from tests.support.reading import installation_at, read_all
from tests.support.same_run import bits_of, differences
from tests.support.whole_system import cua, hashes, project_json, query

pytest.importorskip("torch")

NAME = "small"


class Kind(NamedTuple):
    """One of the two agents."""

    settings: dict[str, Any]
    place: tuple[str, ...]
    """Where the training is killed."""
    ends: str
    """The event that says what an episode came to, and the table that has it."""
    table: str


def dbbench(folder: Path) -> Kind:
    """Two skills in turn; killed in the second update."""
    from tests.support.text_policy import RUN, SKILLS, build_knowing_policy

    build_knowing_policy(folder / "policy")
    settings = {
        **RUN,
        "model_name": str(folder / "policy"),
        "num_steps": 2,
        "skill_sequence": SKILLS[:2],
        "steps_per_skill": 1,
        "replay_share": 0.5,
        "eval_episodes": 3,
        "save_every": 1,
    }
    return Kind(settings, ("optimizer", "2"), "cua.session.ended", "session")


def text_to_sql(folder: Path) -> Kind:
    """GRPO by the scores of steps; killed between the first checkpoint and its step's end."""
    from tests.support.text_policy import build_answering_policy, build_step_scorer

    settings = {
        "training_name": NAME,
        "environment": "text_to_sql",
        **build_answering_policy(folder),
        "process_reward_model": str(build_step_scorer(folder)),
        "core_function": "compute_grpo_process_advantage_avg_unique",
        "loss_fn": "ppo",
        "max_tokens": 60,
        "num_steps": 2,
        "groups_per_batch": 2,
        "group_size": 3,
        "remove_constant_reward_groups": False,
        "learning_rate": 1e-3,
        "lora_rank": 4,
        "eval_every": 0,
        "eval_episodes": 2,
        "save_every": 1,
    }
    place = ("flushed", "cua.checkpoint.saved", "2")
    return Kind(settings, place, "cua.completion.executed", "completion")


def ends_of(home: Path, kind: Kind) -> dict[str, tuple[float, str]]:
    """Rollout -> (reward, outcome), of the log of an undisturbed training."""
    events = [json.loads(record.value) for record in read_all(installation_at(home))]
    of_type: dict[str, dict[str, Any]] = {}
    for event in events:
        of_type.setdefault(event["type"], {})[event["subject"]] = event["data"]
    return {
        data["rollout_id"]: (
            of_type["cua.rollout.finished"][subject]["reward"],
            of_type[kind.ends][subject]["outcome"],
        )
        for subject, data in of_type["cua.rollout.created"].items()
    }


@pytest.mark.services
@pytest.mark.parametrize("make", [dbbench, text_to_sql])
def test_a_killed_training_goes_on_from_kafka_with_the_bits_of_an_undisturbed_one_and_its_rows(
    kafka: KafkaService, environ: dict[str, str], database: str, tmp_path: Path, make: Any
) -> None:
    from producer.config import read_config
    from producer.training.run import run

    kind: Kind = make(tmp_path / "policies")
    whole, home, file = tmp_path / "whole", tmp_path / "home", tmp_path / "settings.json"
    run(read_config(kind.settings), installation=installation_at(whole))

    environ["KAFKA_BOOTSTRAP_SERVERS"] = kafka.bootstrap_servers
    file.write_text(json.dumps(kind.settings))
    run_until_killed(kind.place, ("run", "--config", str(file), "--no-monitor"), environ)
    summary = run(read_config(kind.settings), installation=read_installation(environ))
    ours = bits_of(home, NAME, environ["CUA_TOPIC_PREFIX"])
    assert {place[0] for place in ours} >= {kind.ends, "turn", "sample", "cua.step.finished"}
    assert differences(ours, bits_of(whole, NAME)) == []

    cua("consumers", "run", "--once", environ=environ)
    assert project_json("status", environ=environ)["parked"] == 0
    live = hashes(environ)
    rows = query(
        database,
        f"SELECT rollout_id, reward, outcome FROM cua.{kind.table}"
        " JOIN cua.rollout USING (id) WHERE status = 'completed'",
    )
    undisturbed = ends_of(whole, kind)
    # A rollout that took the place of one cut off has another epoch's name.
    assert sorted((*name.split("/")[2:5], *rest) for name, *rest in rows) == sorted(
        (*name.split("/")[2:5], *end) for name, end in undisturbed.items()
    )
    rewards = query(
        database,
        "SELECT step.reward_mean, avg(sample.reward), bool_and(sample.reward = rollout.reward)"
        " FROM cua.step JOIN cua.sample ON sample.step_id = step.id"
        " JOIN cua.rollout ON rollout.id = sample.rollout_id GROUP BY step.id",
    )
    assert len(rewards) == 2
    for stated, counted, is_rollouts in rewards:
        assert stated == pytest.approx(counted, abs=1e-9)
        assert is_rollouts
    last = query(database, "SELECT success_rate FROM cua.eval ORDER BY step DESC LIMIT 1")
    assert last == [(summary.success_after,)]
    assert project_json("rebuild", environ=environ)["equal"]
    assert hashes(environ) == live
