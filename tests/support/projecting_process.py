"""A projector as a process of its own, to be stopped: `python -m tests.support.projecting_process`.

Projects the local log of CUA_HOME into DATABASE_URL until SIGTERM. With `parallel` it catches up in
two processes, however little there is to do.
"""

import logging
import os
import sys

from consumers.log.open import open_reader
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.parallel import Parallel
from schemas.installation import read_installation
from schemas.shutdown import shutdown_on_signals


def main(how: str) -> None:
    logging.basicConfig(level=logging.INFO)
    shutdown = shutdown_on_signals()
    installation = read_installation(os.environ)
    parallel = Parallel(installation, 2, worthwhile_records=1).fill if how == "parallel" else None
    reader = open_reader(installation)
    ProjectionLoop(
        reader, os.environ["DATABASE_URL"], parallel=parallel, batch_records=200
    ).run_forever(shutdown.graceful)
    reader.close()


if __name__ == "__main__":
    main(sys.argv[1])
