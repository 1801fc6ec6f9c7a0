"""`${a.b}` in a file: each stands for the value of another field, as OmegaConf resolves it."""

import re
from typing import Any, Final

from producer.errors import UsageError

WRAPPED: Final = re.compile(r"^\w+ (raised )?while resolving interpolation: ")
"""The name of a Python error, which means nothing to a user."""


def resolved(fields: dict[str, Any], file: str) -> dict[str, Any]:
    """The fields without interpolations. UsageError names file and field of one that fails."""
    # Loaded here: most files of settings have no interpolations, and --help reads none.
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    # A configuration is recorded, so that no file may take in a variable of the environment.
    OmegaConf.clear_resolver("oc.env")
    try:
        whole = OmegaConf.to_container(OmegaConf.create(fields), resolve=True)
    except RecursionError:
        message = f"--config: {file} is nested too deeply"
        raise UsageError(message) from None
    except OmegaConfBaseException as error:
        problem = str(error.msg or error).splitlines()[0]
        if isinstance(error, InterpolationKeyError):
            target = problem.removeprefix("Interpolation key ").removesuffix(" not found")
            problem = f"there is no field {target} to take the value of"
        elif problem.startswith(("Recursive interpolation", "Interpolation to parent node")):
            problem = "refers to itself"
        problem = WRAPPED.sub("", problem)
        where = f"{error.full_key}: " if error.full_key else ""
        message = f"--config: {file}: {where}{problem}"
        raise UsageError(message) from None
    return {str(name): value for name, value in whole.items()} if isinstance(whole, dict) else {}
