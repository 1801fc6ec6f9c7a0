"""`cua-train compare`: evaluations of the same tasks, paired by task."""

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from producer.emit import Emitter
from producer.errors import NotFoundError
from producer.training.compare import compare
from producer.training.paired_bootstrap import bootstrap_interval
from producer.training.run import run
from schemas import ids
from schemas.base import Progress
from schemas.catalogue import stream
from schemas.clustered_errors import TaskCount
from schemas.evaluation import (
    EvaluationCreated,
    EvaluationFinished,
    EvaluationStarted,
    EvaluationSuperseded,
    Kind,
    Split,
)
from schemas.installation import Installation, read_installation
from schemas.training import TrainingCreated
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.kafka import KafkaService
from tests.support.small_run import small

__all__ = ["cua_train"]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def counts(successes: str, episodes: int = 1) -> dict[str, TaskCount]:
    """One task for each digit: its successes."""
    return {"abcdefgh"[at]: TaskCount(int(number), episodes) for at, number in enumerate(successes)}


# --- the bootstrap ------------------------------------------------------------------------------


def test_a_difference_that_every_task_has_has_no_width() -> None:
    interval = bootstrap_interval(counts("000000"), counts("111111"))
    assert interval == (1.0, 1.0)
    assert interval is not None
    assert interval.excludes_zero


def test_bounds_are_the_quantiles_of_tasks_drawn_with_replacement() -> None:
    # Three tasks gain, three lose. Of six drawn, k gain: P(k = 0) = 1/64 and P(k <= 1) = 7/64, on
    # both sides of 2.5 %, so the bounds are (1 - 5) / 6 and (5 - 1) / 6.
    even = bootstrap_interval(counts("000111"), counts("111000"))
    assert even == pytest.approx((-4 / 6, 4 / 6))
    assert even is not None
    assert not even.excludes_zero
    # Seven of eight gain, one stays. Of eight drawn, X stay: P(X >= 4) = 1.1 %, P(X >= 3) = 6.7 %,
    # so the lower bound is 5/8; P(X = 0) = 34 %, so the upper one is 1.
    most = bootstrap_interval(counts("00000000"), counts("11111110"))
    assert most == pytest.approx((5 / 8, 1.0))


def test_a_task_weighs_as_many_episodes_as_it_has() -> None:
    # Every task gains 1 of 2 in all episodes but the sixth, which has 4 and gains nothing. Where it
    # is drawn k times the gain is (6 - k) / (2 (6 - k) + 4 k) for its two evaluations alike:
    # P(k >= 4) = 0.87 %, P(k >= 3) = 6.2 %: k = 3 gives 3/18. P(k = 0) = 33 %: 1/2.
    before = {**counts("00000", 2), "f": TaskCount(2, 4)}
    after = {**counts("11111", 2), "f": TaskCount(2, 4)}
    low, high = bootstrap_interval(before, after) or (0.0, 0.0)
    assert (low, high) == pytest.approx((3 / 18, 1 / 2))


def test_the_same_seed_draws_the_same_tasks_and_five_tasks_are_too_few() -> None:
    before, after = counts("0101010", 3), counts("3121311", 3)
    drawn = [bootstrap_interval(before, after, num_resamples=200, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert bootstrap_interval(counts("00000"), counts("11111")) is None
    # Only tasks of both count.
    assert bootstrap_interval(counts("00000000"), counts("11111")) is None


# --- the command --------------------------------------------------------------------------------

Record = Callable[..., UUID]


@pytest.fixture
def record(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Appends to the log of the home that the command reads."""
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    return recorder(installation)


def recorder(installation: Installation) -> Record:
    """Appends a finished evaluation, and its training if that is new; returns its id."""
    begun: set[str] = set()

    def append(
        training: str | None,
        successes: str | Mapping[str, TaskCount],
        *,
        step: int = 0,
        temperature: float | None = 0.0,
        split: Split | None = "training_tasks_unseen_seeds",
        kind: Kind | None = None,
        generation: int = 0,
        is_superseded: bool = False,
    ) -> UUID:
        by_task = counts(successes, 4) if isinstance(successes, str) else dict(successes)
        own = None if training is None else ids.training_id(training)
        kind = kind or ("scheduled" if step else "baseline")
        evaluation_id = ids.natural_id("test", training, generation, step, temperature, kind)
        episodes = sum(count.episodes for count in by_task.values())
        right = sum(count.successes for count in by_task.values())
        with Emitter.open(installation) as emitter:
            if training is not None and own is not None and training not in begun:
                begun.add(training)
                emitter.stream(stream("training", own), training_id=own).emit(
                    TrainingCreated(
                        run_name=training,
                        recipe=small().recipe(Path("runs")),
                        total_steps=9,
                        config={},
                    )
                )
            writer = emitter.stream(stream("evaluation", evaluation_id), training_id=own)
            writer.emit(
                EvaluationCreated(
                    kind=kind,
                    training_id=own,
                    generation=None if own is None else generation,
                    step=None if own is None else step,
                    model_path="p",
                    total_tasks=episodes,
                    temperature=temperature,
                    split=split,
                    num_tasks=len(by_task),
                    task_source="six",
                )
            )
            writer.emit(EvaluationStarted(kind=kind, started_at=NOW))
            writer.emit(
                EvaluationFinished(
                    kind=kind,
                    completed_tasks=episodes,
                    eval_time_s=1.0,
                    success_rate=right / max(1, episodes),
                    avg_reward=0.0,
                    avg_turns=1.0,
                    successful_tasks=right,
                    ended_at=NOW,
                    progress=Progress(percent=100.0),
                    metrics={"counts_by_task": {name: list(c) for name, c in by_task.items()}},
                )
            )
            if is_superseded:
                writer.emit(EvaluationSuperseded(kind=kind))
            emitter.flush()
            emitter.log.wait_shipped(30.0)
        return evaluation_id

    return append


def table(cua_train: CuaTrain, *names: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(cua_train("compare", *names, "--json").stdout)["rows"]
    return rows


def test_a_training_alone_is_compared_with_its_evaluations_before_the_first_step(
    record: Record, cua_train: CuaTrain
) -> None:
    record("a", "000000")
    record("a", "111111", step=10)
    record("a", "444444", step=20)
    record("a", "000000", temperature=1.0)
    record("a", "222222", step=20, temperature=1.0)
    rows = table(cua_train, "a")
    assert [(row["evaluation"], row["success"]) for row in rows] == [
        ("baseline", 0.0),
        ("eval-20", 1.0),
        ("baseline-sampled", 0.0),
        ("eval-20-sampled", 0.5),
    ]
    assert rows[0]["difference"] is None
    assert rows[1]["difference"] == {
        "to": "first",
        "gain": 1.0,
        "standard_error": 0.0,
        "num_tasks": 6,
        "interval": [1.0, 1.0],
        "zero_outside": True,
        "too_few_tasks": False,
    }
    assert rows[3]["difference"]["gain"] == 0.5


def test_trainings_are_compared_by_their_last_evaluations_with_the_first_one(
    record: Record, cua_train: CuaTrain
) -> None:
    record("a", "000000")
    record("a", "222222", step=10)
    # Gains of 2, 2, 2, -2, -2 and -2 of 4 episodes: 0 in the mean, residuals 0.5 / 6 each; the
    # clustered error is sqrt(6/5 * 6) / 12.
    record("b", "444000", step=10)
    record("c", "333333", step=20)
    rows = table(cua_train, "a", "b", "c")
    assert [(row["name"], row["success"]) for row in rows] == [("a", 0.5), ("b", 0.5), ("c", 0.75)]
    assert rows[1]["difference"]["gain"] == 0.0
    assert rows[1]["difference"]["standard_error"] == pytest.approx((36 / 5) ** 0.5 / 12, abs=1e-6)
    assert rows[1]["difference"]["interval"] == pytest.approx([-2 / 6, 2 / 6], abs=1e-6)
    assert [row["difference"]["zero_outside"] for row in rows[1:]] == [False, True]
    text = cua_train("compare", "a", "b", "c").stdout
    assert "inside" in text
    assert "outside" in text
    assert "10,000 bootstrap resamples of the tasks, seed 0" in text
    assert "split: training tasks on unseen seeds" in text


def test_what_a_later_generation_repeats_counts_and_what_it_left_does_not(
    record: Record, cua_train: CuaTrain
) -> None:
    record("a", "000000")
    record("a", "111111", generation=1)
    record("a", "444444", step=30, is_superseded=True)
    record("a", "222222", step=20, generation=1)
    rows = table(cua_train, "a")
    assert [(row["evaluation"], row["success"]) for row in rows] == [
        ("baseline", 0.25),
        ("eval-20", 0.5),
    ]


def test_an_evaluation_by_hand_is_compared_by_its_id_and_not_as_its_trainings(
    record: Record, cua_train: CuaTrain
) -> None:
    record("a", "222222", step=10)
    by_hand = record("a", "444444", step=10, kind="manual")
    elsewhere = record(None, "000000", kind="manual", split=None)
    rows = table(cua_train, "a", str(by_hand), str(elsewhere))
    assert [row["success"] for row in rows] == [0.5, 1.0, 0.0]
    assert [row["difference"]["gain"] for row in rows[1:]] == [0.5, -0.5]
    scheduled = record("b", "222222", step=10)
    for one in (by_hand, scheduled):
        assert "is one evaluation" in cua_train("compare", str(one), expected=2).stderr


def test_tasks_that_only_share_their_name_are_not_paired(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, cua_train: CuaTrain
) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    task = {"task_id": "own", "description": "Mute.", "validation_query": "media_volume"}

    def trained(training: str, **changed: object) -> None:
        source = {"source_type": "custom", "custom_tasks": [{**task, "expected": 0, **changed}]}
        config = {"training_name": training, "num_steps": 1, "groups_per_batch": 1}
        run(small(**config, tasks=source, eval_episodes=1), installation=installation)

    trained("a")
    trained("retitled", name="Mute it", tags=["sound"], max_steps=9)
    trained("louder", expected=50)
    (row,) = table(cua_train, "a", "retitled")[1:]
    assert row["difference"]["num_tasks"] == 1
    refused = cua_train("compare", "a", "louder", expected=4).stderr
    assert "task 'own' is defined differently in a and louder (1 of 1 shared tasks" in refused


def test_under_six_tasks_say_so_and_have_no_interval(record: Record, cua_train: CuaTrain) -> None:
    record("a", "00000")
    record("a", "44444", step=1)
    (row,) = table(cua_train, "a")[1:]
    assert row["difference"]["interval"] is None
    assert (row["difference"]["zero_outside"], row["difference"]["too_few_tasks"]) == (None, True)
    assert "too few tasks, under 6" in cua_train("compare", "a").stdout


def test_what_cannot_be_compared_is_refused_by_name(record: Record, cua_train: CuaTrain) -> None:
    record("a", "222222", step=10)
    record("sampled", "222222", step=10, temperature=1.0)
    record("held-out", "222222", step=10, split="held_out")
    record("others", {name: TaskCount(1, 2) for name in "uvwxyz"}, step=10)
    record("bare", {}, step=10)

    def refused(*names: str, expected: int = 4) -> str:
        return cua_train("compare", *names, expected=expected).stderr

    assert "a is evaluated greedy, sampled sampled at temperature 1" in refused("a", "sampled")
    assert "eval-10 of held-out on held-out tasks: different splits" in refused("a", "held-out")
    assert "eval-10 of others (six) share no task" in refused("a", "others")
    assert "eval-10 of bare was recorded without its tasks' episodes" in refused("a", "bare")
    assert "'a' has no evaluations before the first step and after" in refused("a")


def test_a_name_given_twice_is_refused(record: Record, cua_train: CuaTrain) -> None:
    record("a", "222222", step=10)
    refused = cua_train("compare", "a", "a", expected=2)
    assert "'a' is given twice" in refused.stderr
    assert refused.stdout == ""


def test_an_unknown_name_is_not_found_also_where_there_is_no_log(
    record: Record, installation: Installation, cua_train: CuaTrain
) -> None:
    assert "has no log yet" in cua_train("compare", "a", "b", expected=3).stderr
    assert not installation.home.exists()
    record("a", "000000")
    assert "the log has no training 'b'" in cua_train("compare", "a", "b", expected=3).stderr
    unknown = "0b1d7c52-4a8e-5f0e-9d38-2f6b1f6c7a11"
    found = cua_train("compare", "a", unknown, expected=3).stderr
    assert f"no finished evaluation of '{unknown}'" in found


@pytest.mark.usefixtures("record")
def test_it_writes_nothing(installation: Installation, cua_train: CuaTrain) -> None:
    run(small(num_steps=1), installation=installation)

    def files() -> dict[Path, str]:
        return {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in installation.home.rglob("*")
            if path.is_file() and path.suffix not in {".sqlite3-shm", ".sqlite3-wal"}
        }

    before = files()
    assert [row["evaluation"] for row in table(cua_train, "small")] == ["baseline", "eval-1"]
    assert files() == before


def test_on_kafka_every_home_compares_what_others_trained(
    kafka: KafkaService, tmp_path: Path
) -> None:
    def at(home: str) -> Installation:
        return read_installation(
            {
                "CUA_HOME": str(tmp_path / home),
                "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
                "CUA_TOPIC_PREFIX": "compare.",
            }
        )

    first, second = recorder(at("first")), recorder(at("second"))
    first("a", "000000")
    first("a", "444444", step=5)
    second("b", "222222", step=5)
    by_hand = second(None, "111111", kind="manual", split=None)
    alone = compare(at("third"), ["a"])
    assert [row.measured.evaluation.success for row in alone] == [0.0, 1.0]
    others = compare(at("third"), ["a", "b", str(by_hand)])
    assert [row.measured.evaluation.success for row in others] == [1.0, 0.5, 0.25]
    with pytest.raises(NotFoundError, match="no training 'c'"):
        compare(at("third"), ["a", "c"])
    assert not (tmp_path / "third").exists()
