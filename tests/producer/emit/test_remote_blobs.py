"""Blobs behind an fsspec URL.

Uploaded from the spool's folder before the events that name them are shipped.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from consumers.blobs import read_blob
from consumers.errors import CuaProjectError
from producer.blobs import FolderBlobs, RemoteBlobs
from producer.emit import Emitter
from producer.log.blob_uploads import BlobUploads
from producer.log.writer import Record
from schemas.blobs import blob_path, blob_ref
from schemas.environment import EnvironmentRequested
from schemas.installation import Installation


@pytest.fixture
def url() -> Iterator[str]:
    name = f"memory://blobs-{uuid4()}"
    yield name
    files, root = fsspec.core.url_to_fs(name)
    files.rm(root, recursive=True)


def named(ref: str) -> Record:
    return Record("cua.rollouts", "rollout/a", b'{"image":"' + ref.encode() + b'"}')


def test_a_blob_of_an_event_reaches_the_remote_store_and_is_read_back_from_there(
    tmp_path: Path, url: str
) -> None:
    installation = Installation(
        home=tmp_path,
        topic_prefix="cua.",
        kafka_bootstrap_servers=None,
        kafka_options=(),
        blobs_url=url,
    )
    with Emitter.open(installation) as emitter:
        ref = emitter.put_blob(b"pixels")
        emitter.stream(f"environment/{uuid4()}").emit(
            EnvironmentRequested(env_type="a", box_type="b", config={"ref": ref})
        )
    assert read_blob(installation, ref) == b"pixels"


def test_every_blob_that_a_record_names_is_uploaded_before_it_counts_as_shipped(
    tmp_path: Path, url: str
) -> None:
    staging, store = FolderBlobs(tmp_path), RemoteBlobs(url)
    contents = {blob_ref(text): text for text in (b"a", b"b", b"c")}
    staging.put_many(contents)
    BlobUploads(staging, store)([named(ref) for ref in contents])
    assert {ref: store.get(ref) for ref in contents} == contents


def test_a_blob_in_neither_place_is_warned_of_once_and_one_that_the_store_has_is_not(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = RemoteBlobs(url)
    store.put_many({blob_ref(b"there"): b"there"})
    uploads = BlobUploads(FolderBlobs(tmp_path), store)
    for _ in range(2):
        uploads([named(blob_ref(b"there")), named(blob_ref(b"lost"))])
    (message,) = caplog.messages
    assert blob_ref(b"lost") in message


def test_bytes_that_are_not_what_their_name_says_are_an_error(tmp_path: Path) -> None:
    ref = blob_ref(b"right")
    path = tmp_path / "blobs" / blob_path(ref)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"wrong")
    installation = Installation(
        home=tmp_path,
        topic_prefix="cua.",
        kafka_bootstrap_servers=None,
        kafka_options=(),
        blobs_url=str(tmp_path / "blobs"),
    )
    with pytest.raises(CuaProjectError, match="corrupt"):
        read_blob(installation, ref)
