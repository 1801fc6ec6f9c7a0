"""`cua-train serve`, which serves a policy and its adapters, and `cua-train env serve`."""

import ipaddress
import json
import logging
import os
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import rich_click as click

from producer.agents import AGENTS, DEFAULT_AGENT
from producer.agents.environment_server import require_package
from producer.commands.checkpoints import base_of, take_adapter
from producer.commands.given_fields import given_fields, policy_path
from producer.commands.options import (
    COUNT,
    DEVICE,
    DTYPE,
    EnvironmentChoice,
    examples,
    option,
    switch,
    with_options,
)
from producer.config import DEMO_POLICY, ORACLE_POLICY, RunConfig, read_config
from producer.endpoint_url import KEY_VARIABLE
from producer.errors import UsageError
from producer.field_errors import read_as
from producer.policy.compute_settings import ComputeSettings
from producer.task import Task
from schemas.distribution import install_command
from schemas.installation import Installation, read_installation

logger = logging.getLogger(__name__)

EPILOG = examples(
    "$ cua-train serve --model-name demo",
    "$ cua-train serve --model-name Qwen/Qwen3-VL-2B-Instruct --device cuda:0 --port 8001",
    "$ cua-train serve --training-name first",
)
WITH_DEMO = [name for name, agent in AGENTS.items() if agent.built_policy is not None]
"""Environments that have a built-in policy `demo`."""
SERVED = tuple(name for name, agent in AGENTS.items() if agent.is_served)

_with_address = with_options(
    option("--host", "Address to listen on.", metavar="ADDRESS", default="127.0.0.1"),
    option(
        "--port", "Port to listen on; 0 chooses a free one.", click.IntRange(0, 65535), default=8000
    ),
)
_with_json = switch("--json as_json", "Print the URL as JSON once the server listens.", "Output")


class _Served(NamedTuple):
    folder: str
    """Folder or hub id of the policy."""
    name: str
    """The policy's name in requests."""
    adapter: Path | None = None
    """Adapter that is loaded under the training's name."""


@click.command(name="serve", epilog=EPILOG)
@with_options(
    option("--model-name", "A folder, a Hugging Face id or `demo`.", metavar="NAME|FOLDER"),
    option("--training-name", "Serve the newest checkpoint of this training.", metavar="NAME"),
    option("--name", "Name of the policy in requests.", metavar="NAME", shown="--model-name"),
    option(
        "--environment",
        f"Environment that the policy `demo` was built for. One of {', '.join(WITH_DEMO)}.",
        click.Choice(WITH_DEMO),
        default=DEFAULT_AGENT,
        metavar="NAME",
    ),
    _with_address,
    option("--device", "Where it computes.", metavar=DEVICE, default="auto"),
    option("--dtype", "Type of the weights.", DTYPE, default="auto"),
)
@_with_json
def command(
    *,
    model_name: str | None,
    training_name: str | None,
    name: str | None,
    environment: str,
    host: str,
    port: int,
    device: str,
    dtype: str,
    as_json: bool,
) -> None:
    """Serve a policy to other programs: completions, chat completions, LoRA adapters.

    `cua-train run --base-url` samples its rollouts there and loads each new adapter. With
    OPENAI_API_KEY in the environment every request must carry that key.
    """
    if (model_name is None) == (training_name is None):
        message = "give either --model-name or --training-name"
        raise UsageError(message)
    key = os.environ.get(KEY_VARIABLE) or None
    _check(host, key)
    compute = read_as(ComputeSettings, {"device": device, "dtype": dtype})
    if model_name == ORACLE_POLICY:
        message = (
            f"--model-name: {ORACLE_POLICY} is scripted and completes no text, so it cannot be"
            f" served; give a folder, a hub id or {DEMO_POLICY}"
        )
        raise UsageError(message)
    folder = model_name
    if model_name not in {None, DEMO_POLICY}:
        folder = policy_path("--model-name", str(model_name))
    listening = listen(host, port)
    installation = read_installation(os.environ)
    if training_name is not None:
        adapter = take_adapter(training_name, None).folder
        base = base_of(adapter)
        served = _Served(base, base, adapter)
    else:
        assert model_name is not None  # noqa: S101  # one of the two is given
        assert folder is not None  # noqa: S101
        served = _Served(_folder(folder, environment, installation), model_name)
    import uvicorn

    from producer.serve.app import make_app
    from producer.serve.engine import ServingEngine

    engine = ServingEngine.open(served.folder, name or served.name, compute)
    if served.adapter is not None and training_name is not None:
        engine.load_adapter(training_name, str(served.adapter))
    url = f"http://{_address(host, listening)}/v1"
    logger.info("serving %s at %s", ", ".join([engine.name, *engine.adapters]), url)
    if as_json:
        click.echo(json.dumps({"url": url, "models": [engine.name, *engine.adapters]}))
    config = uvicorn.Config(make_app(engine, key), log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def _check(host: str, key: str | None) -> None:
    """Raise UsageError without the extra, and for a public address without a key."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        message = f"serve needs {' and '.join(missing)}"
        raise UsageError(message, ways=(f"run {install_command('serve')}",))
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback and key is None:
        message = (
            f"host: {host} can be reached from other machines, and requests can load files of this"
            f" one; set {KEY_VARIABLE} to a key that requests must send"
        )
        raise UsageError(message)


def _folder(model: str, environment: str, installation: Installation) -> str:
    """The policy's folder or hub id. `demo` is the built policy, which is made first if missing."""
    from producer.training.open_policy import require_torch
    from producer.warm_up.ensure import ensure_built

    require_torch(model)
    if model != DEMO_POLICY:
        return model
    built = AGENTS[environment].built_policy
    if built is None:
        message = f"environment: {environment} has no policy `demo`; give a folder or hub id"
        raise UsageError(message)
    return str(ensure_built(built, installation.policies_dir))


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens at the address. Raises UsageError if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        message = f"port: cannot listen on {host}:{port} ({error.strerror}); choose another"
        raise UsageError(message) from None
    return listening


def _address(host: str, listening: socket.socket) -> str:
    """The address in the form used in URLs."""
    return f"{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


@click.group()
def env() -> None:
    """Offer our environments to other trainers."""


@env.command(
    "serve",
    epilog=examples(
        "$ cua-train env serve",
        f"$ cua-train env serve --environment {SERVED[1]} --port 8400 --json",
    ),
)
@with_options(
    option(
        "--environment",
        f"The environment to serve. One of {', '.join(SERVED)}.",
        EnvironmentChoice(SERVED),
        default=DEFAULT_AGENT,
        metavar="NAME",
    ),
    option(
        "--tasks",
        "Tasks, in the same form as for `run`.",
        metavar="FILE|JSON",
        shown="those of `run` with the policy oracle; on the phone also the demo tasks",
    ),
    option(
        "--max-turns",
        "Turns per episode; a task may set a lower limit.",
        COUNT,
        shown="that of `run`",
    ),
    option("--max-sessions", "Episodes that may run at the same time.", COUNT, default=64),
    _with_address,
)
@_with_json
def serve_environment(
    *,
    environment: str,
    tasks: str | None,
    max_turns: int | None,
    max_sessions: int,
    host: str,
    port: int,
    as_json: bool,
) -> None:
    """Serve an environment over the OpenEnv protocol.

    Clients (TRL, verl, `cua-train run --env-url`) start episodes, send actions and get
    observations and rewards. There is no access control: whoever can reach the address can use
    the environment.
    """
    require_package()
    given = {"environment": environment, "tasks": tasks, "max_turns": max_turns}
    fields = given_fields(given, None) | {"model_name": ORACLE_POLICY}
    if tasks is None and (served_tasks := AGENTS[environment].served_tasks) is not None:
        fields["tasks"] = served_tasks
    config = read_config(fields, {"tasks": "--tasks"})
    served = _tasks(config)
    listening = listen(host, port)
    import uvicorn

    from producer.env_server.app import make_app

    app = make_app(config, served, max_sessions)
    url = f"ws://{_address(host, listening)}"
    logger.info("serving %d tasks of %s at %s", len(served), environment, url)
    if as_json:
        click.echo(json.dumps({"url": url}))
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def _tasks(config: RunConfig) -> list[Task]:
    from producer.tasks.sources import load_tasks
    from producer.training.loaded import set_up_check

    tasks = load_tasks(config.tasks, check=set_up_check(config))
    judged = [task for task in tasks if task.validation_type == "model"]
    if judged:
        message = f"tasks: {judged[0].task_id} is judged by a model, which is not supported"
        raise UsageError(message)
    return tasks
