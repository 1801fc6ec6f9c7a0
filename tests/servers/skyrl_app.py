"""SkyRL's server of the Tinker protocol on a processor: `python skyrl_app.py MODEL PORT FOLDER`.

For SkyRL's environment, which has nothing of this project. Its own command starts the engine by
`uv run`, which would make another environment.
"""

import sys

import uvicorn
from skyrl.tinker import api
from skyrl.tinker.config import EngineConfig, config_to_argv


def engine_command(_parent: object, config: EngineConfig) -> list[str]:
    """Starts the engine in this environment."""
    return [sys.executable, "-m", "skyrl.tinker.engine", *config_to_argv(config)]


model, port, folder = sys.argv[1:]
api._build_uv_run_cmd_engine = engine_command
api.app.state.engine_config = EngineConfig(
    base_model=model,
    backend="jax",
    backend_config={"max_lora_adapters": 12, "max_lora_rank": 16},
    checkpoints_base=f"{folder}/checkpoints",
    database_url=f"sqlite:///{folder}/tinker.db",
)
uvicorn.run(api.app, host="127.0.0.1", port=int(port))
