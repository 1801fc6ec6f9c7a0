"""The whole system on a real Kafka and a real PostgreSQL, through its two commands alone."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.invariants import violations
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT
from tests.support.postgres import PostgresServer
from tests.support.whole_system import cua, hashes, project_json, query

# Its first test builds the policy (100 s on a quiet machine) and then runs four commands; on a busy
# one they took 300 s together.
pytestmark = pytest.mark.timeout(900)
TABLES = (
    *(
        "training",
        "baseline",
        "eval",
        "task",
        "validator",
        "step",
        "group",
        "rollout",
        "turn",
        "action",
        "obs",
        "validation",
    ),
    *("environment", "sample", "status_history"),
)
STEP_COLUMNS = (
    *(
        "loss",
        "kl_divergence",
        "policy_gradient_norm",
        "reward_mean",
        "reward_std",
        "num_tokens",
        "num_trajectories",
        "start_time",
    ),
    *(
        "end_time",
        "rollout_start_time",
        "rollout_end_time",
        "training_start_time",
        "training_end_time",
        "learning_rate",
        "model_path",
    ),
)
ENDS = ("completed", "failed", "cancelled", "terminated", "error")
NUM_STEPS = 5
SCRIPTED = (
    *(
        "run",
        "--training-name",
        "whole",
        "--model-name",
        "oracle",
        "--num-steps",
        str(NUM_STEPS),
        "--group-size",
        "3",
        "--groups-per-batch",
        "2",
    ),
    *(
        "--eval-episodes",
        "4",
        "--eval-every",
        "3",
        "--max-concurrent-rollouts",
        "6",
        "--no-monitor",
        "--json",
    ),
)

TASK_IDS = ["train_01_open_settings", "train_02_enable_wifi"]
LEARNING = (
    *(
        "run",
        "--training-name",
        "whole",
        "--tasks",
        json.dumps({"source_type": "ids", "task_ids": TASK_IDS}),
        "--num-steps",
        "2",
    ),
    *(
        "--group-size",
        "4",
        "--groups-per-batch",
        "2",
        "--max-turns",
        "3",
        "--max-tokens",
        "14",
        "--lora-rank",
        "4",
    ),
    *(
        "--learning-rate",
        "1e-3",
        "--turn-cost",
        "0.01",
        "--parse-error-cost",
        "0.1",
        "--eval-temperature",
        "1",
    ),
    *(
        "--eval-episodes",
        "6",
        "--eval-every",
        "2",
        "--save-every",
        "1",
        "--max-concurrent-rollouts",
        "8",
        "--no-monitor",
        "--json",
    ),
)
RECOMPUTE = ROOT / "tests" / "oracles" / "recompute.py"


def recomputed(events: Path, *arguments: str) -> dict[str, Any]:
    """What tests/oracles/recompute.py finds; it imports nothing of ours."""
    done = subprocess.run(
        [sys.executable, "-P", str(RECOMPUTE), str(events), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


@contextmanager
def projector(environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "consumers", "run"], env=environ, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.services
def test_a_run_fills_every_table_and_all_of_it_is_rebuilt_from_kafka_alone(
    kafka: KafkaService,
    postgres: PostgresServer,
    environ: dict[str, str],
    database: str,
    policy_folder: Path,
    tmp_path: Path,
) -> None:
    environ["KAFKA_BOOTSTRAP_SERVERS"] = kafka.bootstrap_servers
    with projector(environ):
        cua("producer", *LEARNING, "--model-name", str(policy_folder), environ=environ)
    cua("consumers", "run", "--once", environ=environ)
    for table in TABLES:
        assert query(database, f'SELECT count(*) FROM cua."{table}"')[0][0], f"{table} is empty"
    nulls = " + ".join(f'count(*) FILTER (WHERE "{column}" IS NULL)' for column in STEP_COLUMNS)
    assert query(database, f"SELECT {nulls} FROM cua.step")[0][0] == 0
    unfinished = (
        "SELECT entity_type, new_status FROM (SELECT DISTINCT ON (entity_type, entity_id)"
        " entity_type, new_status"
    )
    unfinished += (
        " FROM cua.status_history ORDER BY entity_type, entity_id, epoch DESC, sequence DESC) AS"
        " last WHERE new_status NOT IN %s"
    )
    assert query(database, unfinished % (ENDS,)) == []
    lacking = """SELECT rollout_id FROM cua.rollout AS r WHERE status = 'completed' AND (
        (SELECT count(*) FROM cua.turn WHERE rollout_id = r.id) <> r.num_turns
        OR NOT EXISTS (SELECT FROM cua.validation WHERE rollout_id = r.id)
        OR EXISTS (SELECT FROM cua.turn AS t WHERE t.rollout_id = r.id AND (
            NOT EXISTS (SELECT FROM cua.action WHERE turn_id = t.id)
            OR NOT EXISTS (SELECT FROM cua.obs WHERE turn_id = t.id
                AND obs_type = 'screenshot_before' AND screenshot_uri IS NOT NULL))))"""
    assert query(database, lacking) == []
    unborn = """SELECT rollout_id FROM cua.rollout AS r WHERE NOT EXISTS (
        SELECT FROM cua.status_history WHERE entity_id = r.id AND old_status IS NULL)"""
    assert query(database, unborn) == []
    live = hashes(environ)

    # What was learnt from can be computed again by somebody who has nothing but the events and the
    # blobs.
    events = tmp_path / "events.jsonl"
    events.write_text(
        cua(
            "consumers",
            "tail",
            "--json",
            "--offset",
            "start",
            "--training",
            "whole",
            environ=environ,
        )
    )
    assert recomputed(events)["samples"] == 2 * 2 * 4
    of_loss = recomputed(
        events, "--loss", "--step", "2", "--blobs", str(tmp_path / "home" / "blobs")
    )
    assert of_loss["samples"] > 0
    assert of_loss["loss_recomputed"] == pytest.approx(
        of_loss["loss_in_log"], rel=0, abs=of_loss["tolerance"]
    )

    # Database dropped, home gone: the log on Kafka is all there is.
    other = postgres.create()
    shutil.rmtree(tmp_path / "home")
    anew = {
        **environ,
        "DATABASE_URL": postgres.url(other),
        "CUA_HOME": str(tmp_path / "another-home"),
    }
    report = project_json("rebuild", environ=anew)
    assert report["equal"]
    assert hashes(anew) == live

    # A row changed and a row deleted by hand are named, and healed.
    query(
        postgres.url(other),
        "UPDATE cua.rollout SET reward = reward + 1 WHERE id = (SELECT min(id::text)::uuid FROM"
        " cua.rollout)",
    )
    query(
        postgres.url(other),
        "DELETE FROM cua.validation WHERE id = (SELECT min(id::text)::uuid FROM cua.validation)",
    )
    found = project_json("verify", environ=anew, code=4)
    assert {(item["table"], item["column"]) for item in found["differences"]} >= {
        ("rollout", "reward")
    }
    assert {item["table"] for item in found["differences"]} == {"rollout", "validation"}
    assert project_json("rebuild", environ=anew)["equal"] is False
    assert hashes(anew) == live
    postgres.drop(other)


@pytest.mark.services
def test_training_does_not_notice_that_kafka_is_away_and_nothing_is_lost(
    environ: dict[str, str],
) -> None:
    with KafkaService() as own:
        environ["KAFKA_BOOTSTRAP_SERVERS"] = own.bootstrap_servers
        with subprocess.Popen(
            [sys.executable, "-m", "producer", *SCRIPTED],
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        ) as training:
            assert training.stderr is not None
            for line in training.stderr:
                if line.startswith("step 1/"):
                    own.kill()
                    break
            said = [line for line in training.stderr if line.startswith("step ")]
            own.start()
            assert training.wait(120) == 0
        assert len(said) == NUM_STEPS - 1
        cua(
            "producer", *SCRIPTED, environ=environ
        )  # complete already: ships what was left, and says so
        cua("consumers", "run", "--once", environ=environ)
        hashes(environ)
        lines = cua(
            "consumers",
            "tail",
            "--json",
            "--offset",
            "start",
            "--training",
            "whole",
            environ=environ,
        ).splitlines()
        assert (
            violations(
                [json.loads(line) for line in lines], num_steps=NUM_STEPS, groups=2, group_size=3
            )
            == []
        )
