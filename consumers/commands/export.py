"""`cua-project export`: rollouts as a dataset."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import Column, print_table

if TYPE_CHECKING:
    from consumers.export.export import Form


@click.command()
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--training",
    "names",
    metavar="NAME",
    multiple=True,
    help="Only this training's rollouts; may be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "openai", "sessions"]),
    default="parquet",
    show_default=True,
    help=(
        "Tables for `datasets`, conversations in items of the OpenAI Responses API, or sessions"
        " with a database in LifelongAgentBench's layout."
    ),
)
@click.option("--images/--no-images", default=True, show_default=True, help="Include screenshots.")
@click.option(
    "--archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Archive of the log's beginning.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"rollouts", "turns", "missing_images", "unfinished", "seconds", "folder"}.',
)
def command(
    *,
    folder: Path,
    names: tuple[str, ...],
    form: "Form",
    images: bool,
    archive: Path | None,
    as_json: bool,
) -> None:
    """Write rollouts that have ended as Parquet files that Hugging Face `datasets` opens.

    One row per rollout (task, outcome, reward, advantage) and one per turn (screenshot, action,
    prompt and completion tokens with log-probabilities). Reads the log and the blobs; no database.

    With --format openai one JSON line per rollout: its turns as `input_text`, `input_image` (a data
    URL; with --no-images the blob's name) and `output_text`.

    With --format sessions one `runs.json`: the sessions of DB Bench, with status and outcome.

    Examples:
        cua-project export rollouts --training demo
        python -c 'import datasets; print(datasets.load_dataset("rollouts", "turns"))'
    """
    from consumers.archive.open import open_with_archive, require_pyarrow
    from consumers.home import open_installation
    from consumers.tail.trainings import normalize_name, require_training
    from schemas.catalogue import TOPICS
    from schemas.ids import training_id

    require_pyarrow()
    from consumers.export.export import export

    installation = open_installation(os.environ)
    reader = open_with_archive(installation, archive)
    try:
        normalized = [normalize_name(name) for name in names]
        for name in normalized:
            require_training(reader, installation.topic_prefix + TOPICS["training"], name)
        trainings = [training_id(name) for name in normalized]
        report = export(
            *(reader, installation, folder),
            trainings=trainings,
            with_images=images,
            form=form,
        )
    finally:
        reader.close()
    if as_json:
        click.echo(json.dumps(report._asdict() | {"seconds": round(report.seconds, 3)}))
        return
    columns = [
        Column("rollouts", is_number=True),
        Column("turns", is_number=True),
        Column("unfinished, left out", is_number=True),
        Column("folder"),
    ]
    cells = [f"{report.rollouts:,}", f"{report.turns:,}", f"{report.unfinished:,}", report.folder]
    print_table(columns, [cells])
