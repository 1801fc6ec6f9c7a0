"""What `make bench-peers` computes and checks; no sink is started."""

import json
from pathlib import Path

import pytest

from consumers.tables import ROW_TABLES
from tests.bench import peer_setup, peers
from tests.bench.peer_setup import PeerError, debezium_jars, kafka_is_there, quixstreams_python
from tests.bench.peer_turns import COPY, DEBEZIUM, OURS, QUIXSTREAMS, check_rows
from tests.bench.peers import Report, Round, as_json, main, table
from tests.bench.ready_rows import ReadyTable, RowCount, described
from tests.bench.sink_meter import Spent, Stretch


def stretch(rows: int, seconds: float, cpu_s: float) -> Stretch:
    return Stretch(rows, seconds, cpu_s / 2, cpu_s / 2, 0.0)


def one_round(seconds: float) -> Round:
    """Ours takes so many seconds for 1,000 rows; the peers 2, warm 1 for 500; COPY 0.5."""
    peer = Spent(stretch(1000, 2.0, 4.0), stretch(500, 1.0, 1.0))
    return Round(
        0.1,
        {
            OURS: Spent(stretch(1000, seconds, 2.0), stretch(500, 0.5, 0.5)),
            DEBEZIUM: peer,
            QUIXSTREAMS: peer,
            COPY: Spent(stretch(1000, 0.5, 0.5), None),
        },
    )


def test_ratios_are_medians_of_the_rounds_ratios() -> None:
    report = Report(400, 1000, {"turn": 990}, [one_round(1.0), one_round(2.0), one_round(0.5)])
    lines = table(report).splitlines()
    ratios = lines[lines.index("") :]
    debezium = [line for line in ratios if line.startswith(DEBEZIUM)][-1]
    # 2 / 1, 2 / 2 and 2 / 0.5 times the rows a second; 2 of 4 CPU-seconds; warm 1 / 0.5, 1 of 2.
    assert debezium.split() == [
        *(DEBEZIUM, "2.00", "(1.00-4.00)", "0.50", "(0.50-0.50)"),
        *("2.00", "(2.00-2.00)", "0.50", "(0.50-0.50)"),
    ]


def test_a_round_without_a_warm_half_has_no_warm_figures() -> None:
    report = Report(400, 1000, {"turn": 990}, [one_round(1.0)])
    copy = [line for line in table(report).splitlines() if line.startswith(COPY)][-1]
    assert copy.split()[2:] == ["0.50", "(0.50-0.50)", "4.00", "(4.00-4.00)", "-", "-"]


def test_json_has_every_round_and_ratio() -> None:
    report = Report(400, 1000, {"turn": 990}, [one_round(1.0)])
    found = json.loads(json.dumps(as_json(report)))
    assert found["ratios"][DEBEZIUM]["rows_per_s"] == [2.0]
    assert found["rounds"][0]["sinks"][COPY]["warm"] is None
    assert found["rounds"][0]["sinks"][OURS]["whole"]["cpu_s_per_1000"] == 2.0


def test_a_sink_that_wrote_other_rows_is_refused() -> None:
    wanted = {"turn": RowCount(2, 11), "step": RowCount(3, 12), "obs": RowCount(1, 13)}
    found = {"turn": RowCount(1, 5), "step": RowCount(3, 6), "obs": RowCount(1, 13)}
    with pytest.raises(PeerError) as refused:
        check_rows("Debezium", found, wanted)
    assert str(refused.value) == (
        "Debezium did not write our rows: turn has 1 of 2 rows;"
        " step has 3 of 3 rows with other values"
    )


@pytest.mark.parametrize("one", ROW_TABLES, ids=lambda one: one.__tablename__)
def test_every_column_has_a_type_of_kafka_connect(one: type) -> None:
    found: ReadyTable = described(one.__table__, RowCount(0, 0))  # type: ignore[attr-defined]  # every class of ours maps a table
    columns = one.__table__.columns  # type: ignore[attr-defined]  # the same
    fields = json.loads(found.connect_schema)["fields"]
    assert [field["field"] for field in fields] == [column.name for column in columns]
    assert found.key


def test_without_java_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["peers"])
    assert main() == 1
    assert capsys.readouterr().err == (
        "make bench-peers: Kafka and Debezium need Java: install a runtime, version 17 or newer\n"
    )


def test_without_maven_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUA_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(peer_setup, "SERVICES", tmp_path / "services")
    for install in (kafka_is_there, debezium_jars):
        with pytest.raises(PeerError, match="mvn"):
            install()


def test_an_index_that_does_not_answer_is_named_as_the_cause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peer_setup, "SERVICES", tmp_path / "services")
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(PeerError, match="is a package index configured and reachable"):
        quixstreams_python()


def test_the_first_sink_of_a_round_rotates() -> None:
    taken: list[str] = []

    class Turns:
        def take(self, sink: str, number: int) -> Spent:
            taken.append(f"{sink} {number}")
            return Spent(stretch(1, 1.0, 1.0), None)

    for number in (0, 1):
        peers.take_round(Turns(), number)
    assert taken[0] == f"{OURS} 0"
    assert taken[4] == f"{DEBEZIUM} 1"
    assert taken[7] == f"{OURS} 1"
