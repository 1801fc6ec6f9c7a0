"""The stages of a pipeline. Each runs once; calling again continues with the next one."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final, TypeAlias

from producer.durable import write_durably
from producer.errors import UsageError

logger = logging.getLogger(__name__)

STAGES: Final = "stages.json"
"""File in the pipeline's folder with the figures of finished stages."""
Figures: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of one pipeline."""

    folder: Path
    """Folder of the pipeline's data and policies."""
    recipe: str
    """Hash of everything that determines the figures."""
    title: str
    """Prefix of log lines."""

    def run(self, stages: Mapping[str, Callable[[], Figures]]) -> dict[str, Figures]:
        """Run the unfinished stages and return the figures of all, with seconds and CPU-seconds.

        Raises UsageError for a folder that another recipe made.
        """
        done = self._done()
        for name, stage in stages.items():
            if name in done:
                continue
            begun_s, cpu_s = monotonic(), process_time()
            logger.info("%s: %s", self.title, name)
            figures = stage()
            figures["seconds"] = round(monotonic() - begun_s, 1)
            figures["cpu_seconds"] = round(process_time() - cpu_s, 1)
            done[name] = figures
            whole = {"recipe": self.recipe, "stages": done}
            write_durably(self.folder / STAGES, json.dumps(whole, indent=1) + "\n")
        return done

    def _done(self) -> dict[str, Figures]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / STAGES
        if not path.is_file():
            return {}
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["recipe"] != self.recipe:
            message = f"{self.folder} was made by another version of this demonstration"
            raise UsageError(message, ways=("remove it", "use another --seed"))
        stages: dict[str, Figures] = kept["stages"]
        return stages
