"""The training that a command's argument names, in the tables."""

from sqlalchemy.orm import Session

from consumers.errors import NotFoundError
from consumers.queries import get_training_by_run_name, list_trainings
from consumers.tables import Training
from consumers.tail.trainings import normalize_name
from schemas.advice import did_you_mean


def named_training(session: Session, name: str) -> Training:
    """The training's row; NotFoundError, with a similar name, where the tables have none."""
    training = get_training_by_run_name(session, normalize_name(name))
    if training is None:
        known = [training.run_name for training in list_trainings(session)]
        message = (
            f"the tables have no training {name!r}.{did_you_mean(name, known)} `cua-project status"
            " --all` lists them, and `cua-project run --once` records what the log has"
        )
        raise NotFoundError(message)
    return training
