"""`cua-project gc` deletes what nothing needs, and never what an event names."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from filelock import FileLock
from kafka import KafkaAdminClient, TopicPartition

from consumers.garbage.blobs import delete_unnamed, find_unnamed
from consumers.garbage.stores import FolderStore
from consumers.log.open import open_reader
from producer.blobs import FolderBlobs
from producer.emit import Emitter
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.blobs import blob_path, blob_ref
from schemas.environment import EnvironmentRequested
from schemas.installation import Installation, read_installation
from tests.support.command import Call, call
from tests.support.kafka import KafkaService

__all__ = ["call"]
pytestmark = pytest.mark.services

OLD_S = 7200


@pytest.fixture
def installation() -> Installation:
    return read_installation(os.environ)


def blobs(installation: Installation) -> FolderBlobs:
    return FolderBlobs(installation.home / "blobs")


def put(store: FolderBlobs, content: bytes, age_s: float = OLD_S) -> str:
    ref = blob_ref(content)
    store.put_many({ref: content})
    then = time.time() - age_s
    os.utime(store.folder / blob_path(ref), (then, then))
    return ref


def append(installation: Installation, value: bytes, topic: str = "cua.rollouts") -> None:
    log = LocalLog(installation.local_log_path)
    try:
        log.append([Record(topic, f"environment/{uuid4()}", value)])
    finally:
        log.close()


def test_blobs_that_no_record_names_go_and_every_named_or_young_one_stays(
    call: Call, installation: Installation
) -> None:
    store = blobs(installation)
    unnamed = [put(store, b"nobody %d" % number) for number in range(3)]
    young = put(store, b"young", age_s=3000)
    named = put(store, b"named")
    by_garbage, by_another_prefix, by_a_state = (
        put(store, text) for text in (b"garbage", b"another", b"state")
    )
    append(installation, json.dumps({"data": {"screenshot": named}}).encode())
    append(installation, b"\xff{ not an event " + by_garbage.encode())
    append(installation, by_another_prefix.encode(), topic="other.rollouts")
    state = installation.runs_dir / "r" / "state" / "step-1" / "manifest.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"events": [by_a_state]}))

    dry = call("gc", "--dry-run", "--only", "blobs")
    assert dry.code == 0
    assert dry.out == "blobs     3 blobs that no event names, 24 B\n"
    assert all(map(store.exists, unnamed))

    done = call("gc", "--yes", "--json").json
    assert (done["deleted"], done["blobs"]) == (True, {"count": 3, "bytes": 24})
    assert not any(map(store.exists, unnamed))
    assert all(map(store.exists, [young, named, by_garbage, by_another_prefix, by_a_state]))
    assert call("gc", "--yes", "--json").json["deleted"] is False


def test_without_a_terminal_it_asks_for_yes_and_deletes_nothing(
    call: Call, installation: Installation
) -> None:
    ref = put(blobs(installation), b"x")
    refused = call("gc")
    assert (refused.code, refused.out) == (2, "")
    assert "give --yes or --dry-run" in refused.err
    assert blobs(installation).exists(ref)


def test_a_blob_that_an_emitter_finds_again_is_not_deleted_under_it(tmp_path: Path) -> None:
    store, collector = FolderBlobs(tmp_path), FolderStore(tmp_path)
    ref = put(store, b"seen before")
    digest = bytes.fromhex(ref.rpartition(":")[2])
    older_than = time.time() - 3600
    store.put_many({ref: b"seen before"})
    assert not collector.delete(digest, older_than)
    assert store.get(ref) == b"seen before"
    put(store, b"seen before")
    assert collector.delete(digest, older_than)
    assert not store.exists(ref)


def test_a_collector_killed_between_its_two_steps_loses_nothing(
    call: Call, installation: Installation
) -> None:
    store = blobs(installation)
    ref = put(store, b"named")
    append(installation, ref.encode())
    path = store.folder / blob_path(ref)
    path.rename(path.with_name(path.name + ".gc"))
    assert call("gc", "--dry-run", "--only", "blobs").code == 0
    assert store.get(ref) == b"named"


def test_what_is_named_while_it_collects_stays(installation: Installation) -> None:
    ref = put(blobs(installation), b"x")
    append(installation, b"{}")
    reader = open_reader(installation)
    try:
        found = find_unnamed(installation, reader)
        assert found.count == 1
        append(installation, ref.encode())
        assert delete_unnamed(installation, reader, found, lambda *_: None) == (0, 0)
    finally:
        reader.close()
    assert blobs(installation).exists(ref)


def test_a_running_trainers_blobs_are_as_young_as_its_start(
    call: Call, installation: Installation
) -> None:
    ref = put(blobs(installation), b"waits for its event", age_s=OLD_S)
    folder = installation.runs_dir / "mine"
    folder.mkdir(parents=True)
    with FileLock(folder / "lock"):
        # It began three hours ago.
        then = time.time() - 3 * 3600
        os.utime(folder / "lock", (then, then))
        assert call("gc", "--yes", "--json", "--only", "blobs").json["blobs"]["count"] == 0
    assert call("gc", "--yes", "--json", "--only", "blobs").json["blobs"]["count"] == 1
    assert not blobs(installation).exists(ref)


def test_a_store_that_others_may_use_needs_a_word_and_one_that_cannot_be_listed_is_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = FolderBlobs(tmp_path / "shared")
    ref = put(shared, b"whose?")
    monkeypatch.setenv("CUA_BLOBS", str(shared.folder))
    refused = call("gc", "--yes")
    assert (refused.code, "--store-is-ours" in refused.err) == (2, True)
    assert shared.exists(ref)
    assert call("gc", "--yes", "--store-is-ours").code == 0
    assert not shared.exists(ref)
    monkeypatch.setenv("CUA_BLOBS", "nosuch://bucket")
    refused = call("gc", "--yes", "--store-is-ours")
    assert (refused.code, "nosuch" in refused.err) == (5, True)


def test_a_remote_store_is_collected_by_the_age_it_tells(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fsspec.filesystem("memory")
    monkeypatch.setenv("CUA_BLOBS", "memory://gc-test")
    old, young = (f"/gc-test/{blob_path(blob_ref(text))}" for text in (b"old", b"young"))
    for path in (old, young):
        files.pipe_file(path, b"content")
    files.store[old].modified = files.store[old].created = datetime.now(UTC) - timedelta(hours=2)
    done = call("gc", "--yes", "--json", "--only", "blobs", "--store-is-ours").json
    assert done["blobs"] == {"count": 1, "bytes": 7}
    assert (files.exists(old), files.exists(young)) == (False, True)


@pytest.fixture
def on_kafka(kafka: KafkaService, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("CUA_TOPIC_PREFIX", f"gc{uuid4().hex[:8]}.")
    return read_installation(os.environ)


def emit(installation: Installation, ref: str) -> None:
    with Emitter.open(installation) as emitter:
        emitter.log.connect(30)
        stream = emitter.stream(f"environment/{uuid4()}")
        stream.emit(
            EnvironmentRequested(env_type="android_sim", box_type="android", config={"ref": ref})
        )
        emitter.flush(30)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_with_kafka_the_spools_shipped_records_go_and_kafka_still_names_their_blobs(
    call: Call, on_kafka: Installation
) -> None:
    store = blobs(on_kafka)
    named, unnamed = put(store, b"named"), put(store, b"unnamed")
    emit(on_kafka, named)
    dry = call("gc", "--dry-run", "--keep-days", "0", "--json").json
    assert (dry["spool"]["count"], dry["blobs"]["count"]) == (1, 1)
    done = call("gc", "--yes", "--keep-days", "0", "--json").json
    assert (done["spool"]["count"], done["blobs"]["count"]) == (1, 1)
    assert (store.exists(named), store.exists(unnamed)) == (True, False)
    # Nothing of it is left in the spool; Kafka alone names the blob now.
    assert call("gc", "--yes", "--json").json["blobs"]["count"] == 0
    assert store.exists(named)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_unshipped_records_stay_and_a_running_trainers_stop_the_collection_of_blobs(
    call: Call, on_kafka: Installation
) -> None:
    store = blobs(on_kafka)
    emit(on_kafka, put(store, b"shipped"))
    unshipped, unnamed = put(store, b"unshipped"), put(store, b"unnamed")
    append(on_kafka, unshipped.encode(), topic=f"{on_kafka.topic_prefix}rollouts")
    (on_kafka.runs_dir / "mine").mkdir(parents=True)
    with FileLock(on_kafka.runs_dir / "mine" / "lock"):
        refused = call("gc", "--yes", "--keep-days", "0")
    assert (refused.code, "1 events of a running trainer" in refused.err) == (1, True)
    assert store.exists(unnamed)
    done = call("gc", "--yes", "--keep-days", "0", "--json").json
    assert (done["spool"]["count"], done["blobs"]["count"]) == (1, 1)
    assert (store.exists(unshipped), store.exists(unnamed)) == (True, False)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_log_whose_beginning_is_gone_or_elsewhere_does_not_say_which_blobs_are_named(
    call: Call, on_kafka: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = blobs(on_kafka)
    ref = put(store, b"named")
    emit(on_kafka, ref)
    assert call("gc", "--yes", "--keep-days", "0", "--only", "spool").code == 0
    # The same home on another, empty log.
    monkeypatch.setenv("CUA_TOPIC_PREFIX", f"gc{uuid4().hex[:8]}.")
    assert call("gc", "--yes", "--only", "blobs").code == 1
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS")
    refused = call("gc", "--yes", "--only", "blobs")
    assert refused.code == 1
    assert store.exists(ref)


@pytest.mark.usefixtures("on_kafka")
def test_blobs_beside_a_prefix_without_topics_stay(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a host that emits nothing, a mistyped prefix is the only thing that is wrong."""
    shared = FolderBlobs(tmp_path / "shared")
    ref = put(shared, b"whose?")
    monkeypatch.setenv("CUA_BLOBS", str(shared.folder))
    monkeypatch.setenv("CUA_TOPIC_PREFIX", f"gc{uuid4().hex[:8]}.")
    refused = call("gc", "--yes", "--store-is-ours", "--only", "blobs")
    assert (refused.code, "CUA_TOPIC_PREFIX" in refused.err) == (1, True)
    assert shared.exists(ref)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_archive_names_the_blobs_of_events_that_kafka_has_deleted(
    call: Call, on_kafka: Installation, kafka: KafkaService, tmp_path: Path
) -> None:
    store = blobs(on_kafka)
    named, unnamed = put(store, b"named"), put(store, b"unnamed")
    emit(on_kafka, named)
    assert call("gc", "--yes", "--keep-days", "0", "--only", "spool").code == 0
    folder = str(tmp_path / "archive")
    assert call("archive", folder).code == 0
    reader = open_reader(on_kafka)
    ends = reader.end_offsets(reader.partitions())
    reader.close()
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        admin.delete_records(
            {TopicPartition(at.topic, at.partition): end for at, end in ends.items() if end}
        )
    finally:
        admin.close()
    refused = call("gc", "--yes", "--only", "blobs")
    assert (refused.code, "give its --archive" in refused.err) == (1, True)
    assert call("gc", "--yes", "--only", "blobs", "--archive", folder).code == 0
    assert (store.exists(named), store.exists(unnamed)) == (True, False)
