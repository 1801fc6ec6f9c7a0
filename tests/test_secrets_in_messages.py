"""Addresses in messages have no passwords and no keys."""

import pytest

from consumers.blobs import read_blob
from consumers.errors import UnreachableError
from consumers.garbage.stores import open_store
from producer.blobs import open_blobs
from producer.errors import CuaTrainError
from schemas.blobs import blob_ref
from schemas.installation import read_installation, without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://bucket/blobs", "s3://bucket/blobs"),
        ("sftp://me@host:22/x", "sftp://me@host:22/x"),
        ("ftp://me:s3cret@host/x", "ftp://me:***@host/x"),
        ("s3://AKIA:s3/cret@bucket/x", "s3://AKIA:***@bucket/x"),
        ("abfs://c/x?sas_token=s3cret&a=1", "abfs://c/x?sas_token=***&a=1"),
        ("no ftp://a:s3cret@h, nor ftp://b:s3cret@h/", "no ftp://a:***@h, nor ftp://b:***@h/"),
        ("/var/lib/me:x@y/blobs", "/var/lib/me:x@y/blobs"),
    ],
)
def test_only_what_is_secret_is_left_out(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_no_message_about_a_store_has_its_password() -> None:
    url = "nosuch://me:s3cret@host/x"
    installation = read_installation({"CUA_BLOBS": url})
    ref = blob_ref(b"1")
    with pytest.raises(UnreachableError, match=r"nosuch://me:\*\*\*@host/x") as read:
        read_blob(installation, ref)
    with pytest.raises(UnreachableError, match=r"nosuch://me:\*\*\*@host/x") as collected:
        open_store(installation)
    with pytest.raises(CuaTrainError, match=r"nosuch://me:\*\*\*@host/x") as written:
        open_blobs(installation)
    for raised in (read, collected, written):
        assert "s3cret" not in str(raised.value)
