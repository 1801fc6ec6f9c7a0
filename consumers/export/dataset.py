"""The dataset's folder: Parquet shards and the README that tells `datasets` what is where."""

import json
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from consumers.export.rows import FIELDS, ROLLOUTS, TURNS, Row
from consumers.export.synced_file import write_synced

ROW_GROUP_BYTES = 32 << 20
"""Of images, texts and tokens, so that a reader needs little memory."""
SHARD_BYTES = 512 << 20
IMAGE_FEATURE = {"info": {"features": {"screenshot": {"_type": "Image"}}}}
"""Makes `datasets` show the column as images instead of a struct."""
CONFIGS = {"rollouts": ROLLOUTS, "turns": TURNS}
BYTES_PER_TOKEN = 12


class Shards:
    """One table's files, split where they grow large. Not thread-safe; a context manager."""

    def __init__(self, folder: Path, name: str) -> None:
        self.num_rows = 0
        self._folder = folder / name
        self._folder.mkdir()
        self._schema = CONFIGS[name]
        if name == "turns":
            self._schema = self._schema.with_metadata({"huggingface": json.dumps(IMAGE_FEATURE)})
        self._rows: list[Row] = []
        self._row_bytes = 0
        self._shard_bytes = 0
        self._num_shards = 0
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the last shard; an empty table gets one without rows. OSError."""
        try:
            if kind is None:
                self._write(is_last=True)
        finally:
            self._close(is_wanted=kind is None)

    def _close(self, *, is_wanted: bool) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.close()
        except (OSError, ValueError):
            # Or its finaliser would try again, and print a traceback.
            writer.is_open = False
            if is_wanted:
                raise

    def add(self, row: Row) -> None:
        """The next row."""
        self._rows.append(row)
        self.num_rows += 1
        image = row.get("screenshot")
        self._row_bytes += 500 + (len(image["bytes"]) if image else 0)
        self._row_bytes += sum(len(value) for value in row.values() if isinstance(value, str))
        self._row_bytes += BYTES_PER_TOKEN * len(row.get("prompt_token_ids") or ())
        if self._row_bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self, *, is_last: bool = False) -> None:
        if not self._rows and not (is_last and self._num_shards == 0):
            return
        if self._writer is None:
            path = self._folder / f"{self._num_shards:05d}.parquet"
            self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
            self._num_shards += 1
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._shard_bytes += self._row_bytes
        self._rows, self._row_bytes = [], 0
        if self._shard_bytes >= SHARD_BYTES:
            self._close(is_wanted=True)
            self._shard_bytes = 0


def write_readme(folder: Path, title: str) -> None:
    """README.md: the configurations for `datasets`, and what the columns mean."""
    configs = "".join(
        f"- config_name: {name}\n{'  default: true' + chr(10) if name == 'turns' else ''}"
        f"  data_files:\n  - split: train\n    path: {name}/*.parquet\n"
        for name in CONFIGS
    )
    parts = [f"---\nconfigs:\n{configs}---\n\n# {title}\n"]
    parts.append(
        '\n```python\nfrom datasets import load_dataset\n\nturns = load_dataset(FOLDER, "turns",'
        ' split="train")\n```\n'
    )
    for name, schema in CONFIGS.items():
        parts.append(f"\n## {name}\n\n| column | type | meaning |\n|---|---|---|\n")
        for column in schema:
            kind = "image" if column.name == "screenshot" else column.type
            parts.append(f"| {column.name} | {kind} | {FIELDS.get(column.name, '')} |\n")
    write_synced(folder / "README.md", "".join(parts))
