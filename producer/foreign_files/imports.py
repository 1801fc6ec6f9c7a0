"""Files that a file imports: `import: [a.yaml]` in any section stands for their fields."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from producer.errors import UsageError

IMPORT: Final = "import"
Section = dict[str, Any]


def with_imports(
    path: Path, parse: Callable[[Path], Section], above: tuple[Path, ...] = ()
) -> Section:
    """The file with everything that it imports; what stands in the file itself wins. UsageError."""
    path = path.resolve()
    if path in above:
        message = f"--config: {path} imports itself"
        raise UsageError(message)
    if not path.is_file():
        by = above[-1] if above else path
        message = f"--config: {by}: import: {path} does not exist"
        raise UsageError(message)

    def imported(section: Section, where: str) -> Section:
        names = section.get(IMPORT, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            message = f"--config: {path}: {where}import: must be a list of files"
            raise UsageError(message)
        whole: Section = {}
        for name in names:
            merge(whole, with_imports(path.parent / name, parse, (*above, path)))
        own = {
            name: imported(value, f"{where}{name}.") if isinstance(value, dict) else value
            for name, value in section.items()
            if name != IMPORT
        }
        merge(whole, own)
        return whole

    return imported(parse(path), "")


def merge(into: Section, other: Section) -> None:
    """Put fields into a section; sections in both are merged, other values replaced."""
    for name, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = deepcopy(value)
