"""`cua-train checkpoints`: lists checkpoints, exports an adapter, merges it into its base."""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rich_click as click

from producer.commands.existing import existing_training, training_names
from producer.commands.given_fields import policy_path
from producer.commands.options import (
    check_new_output,
    examples,
    option,
    with_json,
    with_output_folder,
)
from producer.console import print_report
from producer.errors import (
    CuaTrainError,
    MismatchError,
    NotFoundError,
    UsageError,
)
from producer.policy.adapter_settings import (
    ALL_WEIGHTS,
    BASE,
    CONFIG,
    OF_ADVANTAGES,
    WEIGHTS,
    read_adapter_settings,
)
from producer.policy.remote_checkpoint import read_remote
from schemas.installation import Installation, read_installation

if TYPE_CHECKING:
    from producer.training.checkpoints import Checkpoint

logger = logging.getLogger(__name__)

_name = click.argument("source", metavar="NAME|FOLDER")
_step = option("--step", "Checkpoint to take.", click.INT, shown="the newest")


@click.group()
def command() -> None:
    """List, export and merge the checkpoints of trainings."""


@command.command(
    "list",
    epilog=examples("$ cua-train checkpoints list first", "$ cua-train checkpoints list --json"),
)
@click.argument("name", metavar="[NAME]", required=False)
@with_json
def list_(name: str | None, *, as_json: bool) -> None:
    """List the checkpoints of a training, or of all trainings on this host.

    "verified" compares the weights' sha256 with the one recorded when they were saved.
    """
    installation = read_installation(os.environ)
    found = (
        _listed_all(installation)
        if name is None
        else _listed(installation, existing_training(installation, name))
    )
    rows = [
        [
            *(item.training_name, item.generation, item.step, item.verified),
            *(None if item.success is None else round(item.success, 3), item.folder),
        ]
        for item in found
    ]
    columns = ["training", "generation", "step", "verified", "success", "folder"]
    print_report([_row(item) for item in found], columns, rows, as_json=as_json)


@command.command("export", epilog=examples("$ cua-train checkpoints export first --output adapter"))
@_name
@with_output_folder
@_step
@with_json
def export(source: str, output: Path, *, step: int | None, as_json: bool) -> None:
    """Copy an adapter in PEFT's layout, with a model card, and verify the copy."""
    from producer.training.checkpoints import file_sha256

    taken = take_adapter(source, step)
    settings = read_adapter_settings(taken.folder)
    with _all_or_nothing(output) as making:
        for path in (taken.folder / name for name in (CONFIG, WEIGHTS, BASE, *OF_ADVANTAGES)):
            if path.is_file():
                shutil.copyfile(path, making / path.name)
            elif path.is_dir():
                shutil.copytree(path, making / path.name)
        digest = file_sha256(making / WEIGHTS)
        if digest != file_sha256(taken.folder / WEIGHTS) or taken.sha256 not in {None, digest}:
            message = f"{taken.folder / WEIGHTS} changed while it was copied; run again"
            raise MismatchError(message)
        card = _model_card(settings.base_name, taken, settings.rank, settings.alpha, digest)
        (making / "README.md").write_text(card, encoding="utf-8")
    _report({"output": str(output.absolute()), "adapter_sha256": digest}, as_json=as_json)


@command.command("merge", epilog=examples("$ cua-train checkpoints merge first --output policy"))
@_name
@with_output_folder
@_step
@option(
    "--model-name",
    "Base to merge into.",
    metavar="NAME|FOLDER",
    shown="the base that the adapter was trained on",
)
@with_json
def merge(
    source: str, output: Path, *, step: int | None, model_name: str | None, as_json: bool
) -> None:
    """Merge an adapter into its base: transformers and servers load the result by itself."""
    from producer.training.open_policy import require_torch

    taken = take_adapter(source, step)
    base = base_of(taken.folder) if model_name is None else policy_path("--model-name", model_name)
    require_torch(base)
    from producer.policy.torch_policy.state import merge_adapter

    with _all_or_nothing(output) as making:
        parameters = merge_adapter(base, taken.folder, making)
    _report(
        {"output": str(output.absolute()), "base": base, "parameters": parameters}, as_json=as_json
    )


class _Taken(NamedTuple):
    """The adapter to export or merge."""

    folder: Path
    sha256: str | None
    """The hash recorded in the log; None for a folder that belongs to no training."""
    title: str


def take_adapter(source: str, step: int | None) -> _Taken:
    """The adapter in a folder, or of a training's checkpoint: the one of `step` or the newest."""
    folder = Path(source).expanduser()
    if (folder / CONFIG).is_file():
        if step is not None:
            message = f"--step: {source} is one adapter; omit --step"
            raise UsageError(message)
        return _Taken(folder.absolute(), None, f"adapter of {folder.name}")
    from producer.training.checkpoints import choose_checkpoint

    installation = read_installation(os.environ)
    name = existing_training(installation, source, noun="training or adapter folder")
    chosen = choose_checkpoint(_listed(installation, name), name, step)
    if (chosen.folder / ALL_WEIGHTS).is_file():
        message = (
            f"training {name!r} trains all weights and has no adapter; {chosen.folder} is the"
            " policy: copy that folder"
        )
        raise UsageError(message)
    if (remote := read_remote(chosen.folder)) is not None:
        message = (
            f"the checkpoint of training {name!r} is kept by Tinker: {remote.weights}; get its"
            " files with Tinker's own `tinker checkpoint download`"
        )
        raise UsageError(message)
    if not (chosen.folder / CONFIG).is_file():
        message = f"training {name!r} trains a scripted policy, which has no adapter"
        raise UsageError(message)
    title = f"training {name}, generation {chosen.generation}, step {chosen.step}"
    return _Taken(chosen.folder, chosen.adapter_sha256, title)


def base_of(adapter: Path) -> str:
    """Folder or hub id of the policy that the adapter was trained on.

    Raises UsageError, NotFoundError.
    """
    name = read_adapter_settings(adapter).base_name
    if name is None:
        message = f"the adapter {adapter} does not name its base; pass --model-name"
        raise UsageError(message)
    if Path(name).is_absolute() and not Path(name).is_dir():
        # The demo policy's path changes with CUA_HOME.
        moved = read_installation(os.environ).policies_dir / Path(name).name
        if moved.is_dir():
            return str(moved)
        message = f"the adapter's base {name} does not exist; pass --model-name"
        raise NotFoundError(message)
    return name


def _listed_all(installation: Installation) -> list["Checkpoint"]:
    """Checkpoints of every readable training. Logs a warning for each unreadable one."""
    found: list[Checkpoint] = []
    for name in training_names(installation):
        try:
            found += _listed(installation, name)
        except CuaTrainError as error:
            logger.warning("training %r: %s", name, error)
    return found


def _listed(installation: Installation, name: str) -> list["Checkpoint"]:
    from producer.emit import Emitter
    from producer.training.checkpoints import list_checkpoints

    with Emitter.open(installation) as emitter:
        return list_checkpoints(installation, emitter, name)


@contextmanager
def _all_or_nothing(output: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `output` on success and removed on failure."""
    check_new_output(output)
    try:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(dir=output.absolute().parent, prefix=f".{output.name}-"))
    except OSError as error:
        message = f"--output: {output} cannot be written ({error.strerror})"
        raise UsageError(message) from error
    try:
        yield making
        making.chmod(0o755)
        if output.is_dir():
            output.rmdir()
        making.rename(output)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _row(checkpoint: "Checkpoint") -> dict[str, Any]:
    return asdict(checkpoint) | {
        "folder": str(checkpoint.folder),
        "saved_at": checkpoint.saved_at.isoformat(),
    }


def _report(result: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result))
        return
    for name, value in result.items():
        click.echo(f"{name}: {value}")


def _model_card(base: str | None, taken: _Taken, rank: int, alpha: float, digest: str) -> str:
    return f"""---
base_model: {json.dumps(base)}
library_name: peft
tags:
- lora
- cua-train
---

# LoRA adapter: {taken.title}

Trained by reinforcement learning with cua-train on `{base}`: rank {rank}, alpha {alpha:g}.
sha256 of `{WEIGHTS}`: `{digest}`.

```python
from peft import PeftModel

policy = PeftModel.from_pretrained(base, "this folder")
```

`{BASE}` holds the hash of the base's weights that the adapter belongs to.
"""
