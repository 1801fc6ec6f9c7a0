"""`cua-train worker` whose simulated phones take SECONDS for each action: `SECONDS WORDS...`."""

import sys
import time

from producer.agents.android.sim.device.sim import AndroidSim
from producer.cli import main
from producer.environments.environment import Screenshot
from schemas.actions import Action


def slow_down(seconds: float) -> None:
    """Let every phone of this process take its time."""
    act = AndroidSim.act

    def slowly(self: AndroidSim, action: Action) -> Screenshot:
        time.sleep(seconds)
        return act(self, action)

    AndroidSim.act = slowly  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)))
    main()
