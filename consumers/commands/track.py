"""`cua-project track`: trainings in wandb, tensorboard or mlflow."""

import json
import os
from contextlib import closing

import rich_click as click

from schemas.shutdown import shutdown_on_signals


@click.command()
@click.argument("tracker", type=click.Choice(["wandb", "tensorboard", "mlflow"]))
@click.option(
    "--training",
    "names",
    metavar="NAME",
    multiple=True,
    help="Only this training; may be repeated. [default: all]",
)
@click.option("--follow", is_flag=True, help="Keep sending new measurements until interrupted.")
@click.option(
    "--project", metavar="NAME", help="wandb's project, mlflow's experiment. [default: cua-train]"
)
@click.option("--name", metavar="NAME", help="wandb: the run's name. [default: the training's]")
@click.option(
    "--to",
    metavar="FOLDER|URI",
    help="tensorboard: folder of the event files [default: CUA_HOME/tensorboard]; mlflow: tracking"
    " URI [default: MLFLOW_TRACKING_URI].",
)
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"runs", "measurements", "target"} at the end.'
)
@click.option("--while-pid", type=int, hidden=True, help="Stop once the parent is another process.")
def command(
    *,
    tracker: str,
    names: tuple[str, ...],
    follow: bool,
    project: str | None,
    name: str | None,
    to: str | None,
    as_json: bool,
    while_pid: int | None,
) -> None:
    """Mirror trainings to an experiment tracker, from the log.

    Every step and evaluation is a measurement; a new generation of a training is a run of its own.
    What the tracker has already is not sent again. wandb without a key or network keeps its files
    in CUA_HOME/trackers/wandb for `wandb sync`.

    Examples:
        cua-project track tensorboard --to runs
        cua-project track wandb --project phones --training first --follow
        cua-project track mlflow --to sqlite:///mlflow.db
    """
    shutdown = shutdown_on_signals(abort=True)
    from typing import cast

    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.tail.trainings import normalize_name, require_training
    from consumers.trackers.logged import Logged
    from consumers.trackers.mirror import Mirror
    from consumers.trackers.open import TrackerName, TrackerPlace
    from schemas.catalogue import TOPICS
    from schemas.ids import training_id

    installation = open_installation(os.environ)
    place = TrackerPlace(
        cast("TrackerName", tracker), installation, os.environ, project=project, name=name, to=to
    )
    topic = installation.topic_prefix + TOPICS["training"]

    def is_wanted() -> bool:
        lives = while_pid is None or os.getppid() == while_pid
        return lives and not shutdown.graceful.is_set()

    with (
        closing(open_reader(installation)) as reader,
        Logged(place.folder, place.target) as logged,
    ):
        wanted = [normalize_name(name) for name in names]
        if not follow:
            for item in wanted:
                require_training(reader, topic, item)
        with closing(place.open()) as opened:
            mirror = Mirror(
                *(reader, topic, opened, logged),
                trainings=[training_id(item) for item in wanted],
            )
            mirrored = mirror.run(is_wanted, follow=follow)
    if as_json:
        counts = {"runs": len(mirrored.runs), "measurements": mirrored.measurements}
        click.echo(json.dumps(counts | {"target": place.target}))
    else:
        click.echo(
            f"{mirrored.measurements} measurements of {len(mirrored.runs)} runs -> {place.target}"
        )
