"""The recipe's training: `CLIConfig`, `cli_main`, and `python -m` with its settings."""

import asyncio
import sys
import threading

from producer import RunConfig, run
from producer.training.summary import Summary

CLIConfig = RunConfig
"""Takes the recipe's names; a key belongs in the environment."""


async def cli_main(cli_config: RunConfig) -> Summary:
    """Train to the end of the configuration, or continue; as `producer.run`.

    Cancelling the task stops the training in order.
    """
    stop = threading.Event()
    try:
        return await asyncio.to_thread(run, cli_config, stop=stop)
    except asyncio.CancelledError:
        stop.set()
        raise


if __name__ == "__main__":
    from producer.cli import main

    sys.argv[:1] = ["cua-train", "run"]
    main()
