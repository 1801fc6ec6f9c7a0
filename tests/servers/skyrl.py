"""SkyRL's server of the Tinker protocol, and the release of Tinker's SDK that it pins."""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load
from torch import Tensor

from tests.servers.server import UV, ServerProcess, services
from tests.support.ports import free_port

VERSION, SDK_VERSION = "0.4.0", "0.25.0"
START_S = 300.0
VARIABLES = {
    "JAX_PLATFORMS": "cpu",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@pytest.fixture(scope="session")
def skyrl_python() -> Path:
    """Python of the environment with SkyRL: 6 GB, made in a minute. It needs Python 3.12."""
    folder = services(f"skyrl-{VERSION}")
    python = folder / "bin" / "python"
    if not (folder / ".installed").is_file():
        subprocess.run([UV, "venv", "--quiet", "--clear", "-p", "3.12", folder], check=True)
        install: list[str | Path] = [UV, "pip", "install", "--quiet", "-p", python]
        # Its metadata does not ask for the last two.
        packages = [f"skyrl[tinker,jax]=={VERSION}", "aiohttp", "psutil"]
        subprocess.run([*install, *packages], check=True, timeout=600)
        (folder / ".installed").touch()
    return python


@pytest.fixture(scope="session")
def pinned_sdk() -> Path:
    """A folder for PYTHONPATH with the SDK that SkyRL answers; its own packages are ours."""
    folder = services(f"tinker-{SDK_VERSION}")
    if not (folder / "tinker").is_dir():
        install: list[str | Path] = [UV, "pip", "install", "--quiet", "--no-deps"]
        install += ["--target", folder]
        subprocess.run([*install, f"tinker=={SDK_VERSION}"], check=True, timeout=300)
    return folder


class SkyrlServer(ServerProcess):
    """A server of one policy's folder, under the folder's name."""

    def __init__(self, python: Path, policy: Path, folder: Path) -> None:
        """`folder`: empty, absolute; for its log, database and saved weights."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._checkpoints = folder / "checkpoints"
        app = Path(__file__).with_name("skyrl_app.py")
        super().__init__(
            # -P: this folder has a module named skyrl, too.
            [str(python), "-P", str(app), str(policy), str(port), str(folder)],
            VARIABLES,
            f"{self.url}/api/v1/healthz",
            folder / "log",
            START_S,
        )

    def saved_adapter(self, path: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Settings and weights, as peft names them, of a saved `tinker://RUN/weights/NAME`."""
        _, _, run, _, name = path.split("/")
        file = self._checkpoints / run / "sampler_weights" / f"{name}.tar.gz"
        with tarfile.open(file) as archive:
            settings = archive.extractfile("adapter_config.json")
            weights = archive.extractfile("adapter_model.safetensors")
            assert settings is not None
            assert weights is not None
            return json.loads(settings.read()), load(weights.read())


@contextmanager
def skyrl_server(python: Path, policy: Path, folder: Path) -> Iterator[SkyrlServer]:
    """A running SkyRL that ends with the block."""
    server = SkyrlServer(python, policy, folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
