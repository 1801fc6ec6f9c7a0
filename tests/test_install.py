"""`.ci/install` installs requirements.lock line by line, or says in one sentence why it cannot.

The real script runs on a small project, whose packages come from a folder of wheels.
"""

import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import ROOT
from tests.support.wheels import lock_entry, repack, write_wheel

TOOLS = [
    *("uv", "hatchling", "editables"),
    *("packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"),
]
"""What sets a .venv up, and what hatchling needs."""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "small-project"
version = "1"
dependencies = ["ordinary>=1", "overridden>=1"]

[project.scripts]
cua-train = "producer:main"

[tool.hatch.build.targets.wheel]
packages = ["producer"]
"""
OVERRIDES = """
[tool.uv]
override-dependencies = ["overridden>=1"]
"""
"""What broke every installation: uv read it while it installed, and took the newest release."""


class Checkout(NamedTuple):
    """A project with the real .ci, and the folder of wheels that is its package index."""

    folder: Path
    wheels: Path

    def install(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run .ci/install with the index alone."""
        index = {"UV_OFFLINE": "1", "UV_FIND_LINKS": str(self.wheels)}
        index |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
        return subprocess.run(
            [str(self.folder / ".ci" / "install")],
            cwd=self.folder,
            env={**kept, "UV_CACHE_DIR": str(self.wheels.parent / "cache"), **index, **variables},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def installed(self) -> dict[str, str]:
        """Name -> version, of .venv."""
        program = (
            "from importlib.metadata import distributions as d\n"
            "print(*(f'{each.name} {each.version}' for each in d()), sep='\\n')"
        )
        python = self.folder / ".venv" / "bin" / "python"
        printed = subprocess.run(
            [str(python), "-I", "-c", program], capture_output=True, text=True, check=True
        ).stdout
        return dict(line.split(" ", 1) for line in printed.splitlines())

    @property
    def is_complete(self) -> bool:
        """Whether .venv counts as set up."""
        return (self.folder / ".venv" / ".installed").exists()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tools")
    return [repack(folder, name) for name in TOOLS]


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .venv as stage 1 leaves it."""
    folder = tmp_path_factory.mktemp("bare") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def venv_with_uv(
    bare_venv: Path, tools: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A .venv as stage 2 leaves it."""
    folder = tmp_path_factory.mktemp("uv") / ".venv"
    place(bare_venv, folder)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(tools[TOOLS.index("uv")])], check=True)
    return folder


def place(venv: Path, where: Path) -> None:
    """A copy: nothing that a stage runs in it names its folder."""
    shutil.copytree(venv, where, symlinks=True, copy_function=os.link)


@pytest.fixture
def begun(checkout: Checkout, bare_venv: Path, venv_with_uv: Path, is_uv_there: bool) -> Checkout:
    """A checkout whose installation ended after stage 1 or 2."""
    place(venv_with_uv if is_uv_there else bare_venv, checkout.folder / ".venv")
    return checkout


@pytest.fixture
def checkout(tmp_path: Path, tools: list[Path]) -> Checkout:
    """Three packages are locked at 1.0, and the index has 2.0 of each; the path has a space."""
    index, folder = tmp_path / "index", tmp_path / "a checkout"
    index.mkdir()
    (folder / "producer").mkdir(parents=True)
    (folder / "producer" / "__init__.py").write_text("def main(): print('installed')\n")
    for package in ("schemas", "consumers"):
        (folder / package).mkdir()
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    (folder / "pyproject.toml").write_text(PROJECT)
    needs_transitive = (
        "Metadata-Version: 2.1\nName: ordinary\nVersion: 1.0\nRequires-Dist: transitive"
    )
    files = {"ordinary-1.0.dist-info/METADATA": needs_transitive.encode()}
    locked = [
        write_wheel(index, "ordinary", "1.0", files),
        write_wheel(index, "overridden", "1.0", {}),
        write_wheel(index, "transitive", "1.0", {}),
    ]
    for name in ("ordinary", "overridden", "transitive"):
        write_wheel(index, name, "2.0", {})
    for tool in tools:
        (index / tool.name).symlink_to(tool)
    entries = [lock_entry(wheel) for wheel in (*locked, *tools)]
    (folder / "requirements.lock").write_text("".join(entries))
    return Checkout(folder, index)


def test_the_locks_versions_are_installed_whatever_newer_ones_the_index_offers(
    checkout: Checkout,
) -> None:
    # An override in the project, and one in a folder above it, which uv would read as well.
    (checkout.folder / "pyproject.toml").write_text(PROJECT + OVERRIDES)
    (checkout.folder.parent / "uv.toml").write_text('override-dependencies = ["ordinary>=2"]\n')
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    versions = checkout.installed()
    assert {name: versions[name] for name in ("ordinary", "overridden", "transitive")} == {
        "ordinary": "1.0",
        "overridden": "1.0",
        "transitive": "1.0",
    }
    ran = subprocess.run(
        [str(checkout.folder / ".venv" / "bin" / "cua-train")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "installed\n"
    assert checkout.install().stderr == ""


def test_a_version_that_is_not_the_locks_is_found(checkout: Checkout, venv_with_uv: Path) -> None:
    place(venv_with_uv, checkout.folder / ".venv")
    assert checkout.install().returncode == 0
    versions = checkout.installed()
    site = checkout.folder / ".venv" / "lib"
    (info,) = site.rglob("transitive-1.0.dist-info")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: transitive\nVersion: 2.0\n")
    done = subprocess.run(
        [str(checkout.folder / ".venv/bin/python"), "-I", ".ci/check_lock.py", "installed"],
        cwd=checkout.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert versions["transitive"] == "1.0"
    assert done.returncode == 2
    assert "transitive 2.0 is installed, 1.0 locked" in done.stderr


@pytest.mark.parametrize(
    ("dependency", "named"),
    [
        ("absent>=1", "absent is missing"),
        ("ordinary>=1.5", "ordinary>=1.5 is asked for, 1.0 pinned"),
    ],
)
def test_a_lock_that_does_not_fit_pyproject_is_refused_with_2(
    checkout: Checkout, bare_venv: Path, dependency: str, named: str
) -> None:
    place(bare_venv, checkout.folder / ".venv")
    project = PROJECT.replace('"ordinary>=1"', f'"{dependency}"')
    (checkout.folder / "pyproject.toml").write_text(project)
    done = checkout.install()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"error: requirements.lock does not fit pyproject.toml ({named}):"
        " run `make lock` where .venv is set up, and commit its result"
    )
    assert not checkout.is_complete


@pytest.mark.parametrize("is_uv_there", [False, True])
def test_an_index_that_cannot_be_reached_is_told_with_5(begun: Checkout, is_uv_there: bool) -> None:
    closed = "http://127.0.0.1:9/simple"
    nowhere = {"UV_OFFLINE": "0", "UV_FIND_LINKS": "", "UV_DEFAULT_INDEX": closed}
    nowhere |= {"UV_HTTP_RETRIES": "0", "NO_PROXY": "127.0.0.1"}
    if not is_uv_there:
        nowhere |= {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": closed}
        nowhere |= {"PIP_RETRIES": "1"}
    done = begun.install(**nowhere)
    assert done.returncode == 5, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: the package index cannot be reached;")
    assert "Traceback" not in done.stderr
    assert not begun.is_complete


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    """URL of an index with a certificate of its own making."""
    made = (tmp_path / "key.pem", tmp_path / "cert.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(
        [*words, "-keyout", str(made[0]), "-out", str(made[1])], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made[1], made[0])
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://localhost:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("is_uv_there", [False, True])
def test_an_index_whose_certificate_is_not_trusted_is_told_with_5(
    begun: Checkout, untrusted: str, is_uv_there: bool
) -> None:
    index = {"UV_OFFLINE": "0", "UV_FIND_LINKS": "", "UV_DEFAULT_INDEX": untrusted}
    index |= {"UV_HTTP_RETRIES": "0", "NO_PROXY": "localhost", "SSL_CERT_FILE": ""}
    if not is_uv_there:
        index |= {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": untrusted}
        index |= {"PIP_RETRIES": "1"}
    done = begun.install(**index)
    assert done.returncode == 5, done.stderr
    assert "SSL_CERT_FILE and PIP_CERT" in done.stderr.splitlines()[-1]
    assert ("trying again with the certificates that this system" in done.stderr) == is_uv_there
    assert not begun.is_complete


def test_a_full_disk_is_told_with_2(checkout: Checkout) -> None:
    """A file-size limit is no full disk, so this needs a small file system of its own."""
    small = checkout.folder / ".venv"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        done = checkout.install(UV_LINK_MODE="copy")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: the disk is full:")
    assert not checkout.is_complete


def test_a_machine_without_a_fitting_python_is_told_with_2(
    checkout: Checkout, tmp_path: Path
) -> None:
    old = tmp_path / "bin"
    old.mkdir()
    (old / "python3").write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.9.2'\nexit 1\n"
    )
    (old / "python3").chmod(0o755)
    for tool in ("bash", "env", "cat", "cksum", "rm", "dirname", "readlink"):
        found = shutil.which(tool)
        assert found is not None
        (old / tool).symlink_to(found)
    done = checkout.install(PATH=str(old))
    assert done.returncode == 2
    assert (
        "error: Python 3.11, 3.12 or 3.13 with its venv module is needed; found Python 3.9.2"
        in (done.stderr)
    )
    assert not checkout.is_complete


def test_what_is_installed_here_is_the_lock() -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / ".ci" / "check_lock.py"), "installed"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
