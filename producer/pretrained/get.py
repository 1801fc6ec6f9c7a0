"""Makes a pretrained policy's folder: finds its file, checks the hash and converts it.

The folder appears complete or not at all. A killed process leaves one whose name begins with a dot,
which the next process removes.
"""

import hashlib
import mmap
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock

from producer.durable import sync_file, sync_folder, write_durably
from producer.errors import MismatchError, UsageError
from producer.pretrained.gguf import GgufFile
from producer.pretrained.index import fetch_wheel
from producer.pretrained.known import SOURCE, KnownModel, source_of, source_text
from producer.pretrained.llama_folder import check_convertible, write_folder

_CARD: Final = "README.md"


@dataclass(frozen=True, slots=True)
class Made:
    """A pretrained policy that is available locally."""

    folder: Path
    sha256: str
    """Hash of the wheel or GGUF file that it was made from."""
    is_new: bool


def get_model(model: KnownModel, policies_dir: Path, given: Path | None) -> Made:
    """Return the policy's folder, making it from `given` or the package index if it is missing.

    Waits for another process that is making it. Raises UsageError if the file is missing or a GGUF
    file of another kind, MismatchError if its hash differs, and UnreachableError without an index.
    """
    folder = model.folder(policies_dir)
    sha256 = None if given is None else _checked(model, given)
    policies_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(policies_dir / f".{model.name}.lock"):
        if folder.is_dir():
            return Made(folder, source_of(folder)["sha256"], is_new=False)
        for abandoned in policies_dir.glob(f".making-{model.name}-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=f".making-{model.name}-"))
        try:
            if given is None or sha256 is None:
                given = fetch_wheel(model, making / "wheel")
                sha256 = _checked(model, given)
            _convert(model, given, sha256, making / "policy")
            (making / "policy").rename(folder)
            sync_folder(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return Made(folder, sha256, is_new=True)


def _checked(model: KnownModel, path: Path) -> str:
    """The file's hash, which must be that of the wheel or of the GGUF file in it."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        message = f"--from: there is no file {path}"
        raise UsageError(message) from None
    except OSError as error:
        message = f"--from: {path} cannot be read: {error.strerror}"
        raise UsageError(message) from None
    if found in {model.wheel_sha256, model.gguf_sha256}:
        return found
    expected, what = model.wheel_sha256, f"the wheel {model.wheel}"
    if path.suffix == ".gguf":
        expected, what = model.gguf_sha256, f"the GGUF file of {model.wheel}"
        with _mapped(path) as data:
            check_convertible(_read(data, path), str(path))
    message = (
        f"{path} is not {what}: its sha256 is {found}, and {expected} is expected; give that file,"
        f" or `{model.command}` without --from"
    )
    raise MismatchError(message)


def _convert(model: KnownModel, path: Path, sha256: str, folder: Path) -> None:
    folder.mkdir()
    if sha256 == model.gguf_sha256:
        with _mapped(path) as data:
            _write(data, path, folder)
    else:
        with zipfile.ZipFile(path) as wheel:
            _write(memoryview(wheel.read(model.member)), path, folder)
    (folder / _CARD).write_text(_card(model), encoding="utf-8")
    write_durably(folder / SOURCE, source_text(model, sha256))
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes files that only their owner can read
        sync_file(file)
    sync_folder(folder)


def _write(data: memoryview, path: Path, folder: Path) -> None:
    file = _read(data, path)
    check_convertible(file, str(path))
    try:
        write_folder(file, folder)
    except ValueError as error:
        message = f"{path} is not a whole policy: {error}; choose another file"
        raise UsageError(message) from None


def _read(data: memoryview, path: Path) -> GgufFile:
    try:
        return GgufFile(data)
    except ValueError as error:
        message = f"{path} is not a GGUF file: {error}; choose another file"
        raise UsageError(message) from None


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _card(model: KnownModel) -> str:
    return (
        f"---\nlicense: {model.licence.lower()}\n---\n\n# {model.title}\n\n"
        f"Made by `{model.command}` from `{model.member}` in the wheel {model.wheel}:"
        f" {model.origin}, converted to float32. Licence: {model.licence}.\n"
    )
