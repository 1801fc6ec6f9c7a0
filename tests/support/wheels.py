"""Wheels for a package index in a folder: invented ones, and installed packages packed again."""

import hashlib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

NOT_PACKED = {"RECORD", "WHEEL", "INSTALLER", "REQUESTED"}
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """A wheel of `files` (path in it -> content); what METADATA, WHEEL and RECORD lack is added."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    whole = {f"{info}/METADATA": metadata.encode(), **files, f"{info}/WHEEL": WHEEL.encode()}
    record = "".join(f"{path},,\n" for path in (*whole, f"{info}/RECORD"))
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in {**whole, f"{info}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, content)
    return wheel


def repack(folder: Path, name: str) -> Path:
    """The wheel of a package that is installed here, as an index would offer it."""
    installed = distribution(name)
    files: dict[str, bytes] = {}
    module = name.replace("-", "_")
    for file in installed.files or ():
        path = file.as_posix()
        if path.endswith(".pyc") or file.name in NOT_PACKED:
            continue
        if path.startswith("../../../bin/"):
            if installed.entry_points.select(group="console_scripts"):
                continue
            path = f"{module}-{installed.version}.data/scripts/{file.name}"
        files[path] = Path(str(file.locate())).read_bytes()
    return write_wheel(folder, name, installed.version, files)


def lock_entry(wheel: Path) -> str:
    """The line of a lock that pins this file."""
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n"
