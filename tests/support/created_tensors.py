"""What a computation allocates: every tensor that torch creates, with its dtype and size."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class CreatedTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the tensors that operations return."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sizes: list[tuple[torch.dtype, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.sizes += [
            (tree_leave.dtype, tree_leave.numel())
            for tree_leave in tree_leaves(result)
            if isinstance(tree_leave, torch.Tensor)
        ]
        return result

    def largest(self, dtype: torch.dtype) -> int:
        """Elements of the largest tensor of this dtype; 0 without one."""
        return max((size for one, size in self.sizes if one == dtype), default=0)


@contextmanager
def created_tensors() -> Iterator[CreatedTensors]:
    """Notes what this thread creates inside the context."""
    with CreatedTensors() as created:
        yield created
