"""Parallel work on the CPU: order, errors, grad mode, even parts."""

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from producer.policy.sequences import split_evenly
from producer.policy.torch_policy import cpu_parallel
from producer.policy.torch_policy.cpu_parallel import (
    add_gradients,
    num_workers,
    parallel_map,
)

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 2, 5])
def worker_count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count: int = request.param
    monkeypatch.setattr(cpu_parallel, "num_workers", lambda _device: count)
    return count


@pytest.mark.usefixtures("worker_count")
def test_results_come_in_the_order_of_the_items() -> None:
    assert list(parallel_map(lambda number: number * 10, range(17), CPU)) == [
        number * 10 for number in range(17)
    ]


def test_two_items_are_processed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_parallel, "num_workers", lambda _device: 2)
    both = threading.Barrier(2, timeout=30)  # broken, which raises, unless both arrive
    assert sorted(parallel_map(lambda _: both.wait(), range(2), CPU)) == [0, 1]


@pytest.mark.usefixtures("worker_count")
@pytest.mark.parametrize("with_grad", [True, False])
def test_work_has_the_caller_s_grad_mode(*, with_grad: bool) -> None:
    with torch.set_grad_enabled(with_grad):
        assert (
            list(parallel_map(lambda _: torch.is_grad_enabled(), range(3), CPU)) == [with_grad] * 3
        )


@pytest.mark.usefixtures("worker_count")
def test_what_work_raises_is_raised() -> None:
    def work(number: int) -> int:
        return 1 // number

    with pytest.raises(ZeroDivisionError):
        list(parallel_map(work, [1, 0, 2], CPU))


def test_workers_and_torch_s_threads_share_the_cores_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    for threads, expected in ((1, 8), (3, 2), (8, 1), (64, 1)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert num_workers(CPU) == expected


def test_an_accelerator_has_one_worker() -> None:
    assert num_workers(torch.device("cuda")) == 1


@given(items=st.lists(st.integers(), max_size=40), num_parts=st.integers(min_value=1, max_value=9))
def test_parts_are_even_ordered_and_complete(items: list[int], num_parts: int) -> None:
    parts = split_evenly(items, num_parts)
    assert [item for part in parts for item in part] == items
    assert len(parts) == min(num_parts, len(items))
    assert not parts or max(map(len, parts)) - min(map(len, parts)) <= 1


def test_gradients_add_up() -> None:
    parameter, unused = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(2))
    for gradient in (
        torch.tensor([1.0, 2.0]),
        None,
        torch.tensor([1.0, 2.0]),
        torch.tensor([1.0, 2.0]),
    ):
        add_gradients([parameter, unused], [gradient, None])
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [3.0, 6.0]
    assert unused.grad is None
