"""A supervised training: what it minimises, in which order, and that nothing changes its bits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedModel

from producer.algorithms.learning_rate import learning_rate_factor
from producer.errors import MismatchError, NotFoundError
from producer.policy.prefix_clusters import cluster_by_prefix
from producer.policy.torch_policy.loading import load_base, load_network
from producer.policy.torch_policy.logprobs import length_batches
from producer.policy.torch_policy.seeded_dropout import seed_dropout
from producer.supervised.fit import Fit, FitSettings, FitStep, batch_of_step, steps_per_epoch
from producer.supervised.objective import CrossEntropy, Example, LoadedNetwork
from tests.producer.supervised.conftest import are_equal, make_examples, weights

SETTINGS = FitSettings(num_steps=6, batch_size=4, learning_rate=1e-2, warmup_steps=2)
EXAMPLES = make_examples(10)
ALIKE = [
    Example((*range(1, 40), 40 + number, 7, 8), (*[False] * 40, True, True)) for number in range(10)
]
"""Prompts of 40 tokens of which 39 are the same."""
Network = Callable[[], LoadedNetwork]


@pytest.fixture(params=["all weights", "an adapter with dropout"])
def fresh(request: pytest.FixtureRequest, folder: Path) -> Network:
    """The same network each time it is called."""

    def make() -> LoadedNetwork:
        if request.param == "all weights":
            network, _ = load_base(str(folder))
            network.requires_grad_(requires_grad=True)
            return network
        adapted = load_network(str(folder), lora_rank=4, seed=1).adapted
        seed_dropout(adapted, 0.3)
        return adapted

    return make


def run(network: LoadedNetwork, settings: FitSettings = SETTINGS) -> list[FitStep]:
    steps: list[FitStep] = []
    Fit(network, EXAMPLES, CrossEntropy(), settings).run(steps.append)
    return steps


def test_a_fit_learns_its_examples(network: PreTrainedModel) -> None:
    before = CrossEntropy().loss_sum(network, EXAMPLES).item()
    run(network, replace(SETTINGS, num_steps=60))
    assert CrossEntropy().loss_sum(network, EXAMPLES).item() < 0.1 * before


def test_the_loss_is_the_mean_over_the_batch_s_targets(network: PreTrainedModel) -> None:
    batch = [EXAMPLES[index] for index in batch_of_step(0, len(EXAMPLES), 4, seed=0)]
    expected = sum(CrossEntropy().loss_sum(network, [item]).item() for item in batch)
    expected /= sum(sum(item.loss_mask) for item in batch)
    step = Fit(network, EXAMPLES, CrossEntropy(), replace(SETTINGS, max_tokens=1)).step()
    assert step.loss == pytest.approx(expected, rel=1e-6)
    assert (step.number, step.num_items, step.epoch) == (1, 4, 0)


def test_the_passes_of_a_batch_change_its_gradient_by_rounding_alone(folder: Path) -> None:
    norms = []
    for max_tokens in (1, 50, 10_000):
        network, _ = load_base(str(folder))
        network.requires_grad_(requires_grad=True)
        settings = replace(SETTINGS, max_tokens=max_tokens)
        norms.append(Fit(network, EXAMPLES, CrossEntropy(), settings).step().gradient_norm)
    assert norms == pytest.approx([norms[0]] * 3, rel=1e-5)


def test_the_number_of_cores_changes_no_bit(
    fresh: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []
    for num_cores in (1, 2, 5):
        monkeypatch.setattr(
            "os.sched_getaffinity", lambda _pid, num=num_cores: set(range(num)), raising=False
        )
        network = fresh()
        steps = run(network, replace(SETTINGS, max_tokens=30, muon_learning_rate=1e-2))
        trained.append((weights(network), steps))
    assert all(are_equal(found, trained[0][0]) for found, _ in trained[1:])
    assert all(steps == trained[0][1] for _, steps in trained[1:])


def test_a_fit_that_goes_on_from_a_state_has_the_bits_of_one_without_a_break(
    fresh: Network, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, muon_learning_rate=1e-2, weight_decay=0.1)
    whole = fresh()
    steps = run(whole, settings)
    begun = Fit(fresh(), EXAMPLES, CrossEntropy(), settings)
    for _ in range(3):
        begun.step()
    begun.save_state(tmp_path)
    network = fresh()
    continued = Fit(network, EXAMPLES, CrossEntropy(), settings)
    continued.load_state(tmp_path)
    assert continued.version == 3
    later: list[FitStep] = []
    continued.run(later.append)
    assert later == steps[3:]
    assert are_equal(weights(network), weights(whole))


def test_a_state_goes_on_under_another_bound_of_a_pass(
    network: PreTrainedModel, tmp_path: Path
) -> None:
    Fit(network, EXAMPLES, CrossEntropy(), SETTINGS).save_state(tmp_path)
    bounded = Fit(network, EXAMPLES, CrossEntropy(), SETTINGS, pass_tokens=1)
    bounded.load_state(tmp_path)
    whole = Fit(network, EXAMPLES, CrossEntropy(), replace(SETTINGS, learning_rate=1e-9)).step()
    assert bounded.step().loss == pytest.approx(whole.loss, rel=1e-5)


def test_a_state_of_other_data_settings_or_weights_is_refused(
    network: PreTrainedModel, folder: Path, tmp_path: Path
) -> None:
    Fit(network, EXAMPLES, CrossEntropy(), SETTINGS).save_state(tmp_path)
    other = replace(SETTINGS, learning_rate=2e-2)
    with pytest.raises(MismatchError, match="other data or settings"):
        Fit(network, EXAMPLES, CrossEntropy(), other).load_state(tmp_path)
    with pytest.raises(MismatchError, match="other data or settings"):
        Fit(network, EXAMPLES[1:], CrossEntropy(), SETTINGS).load_state(tmp_path)
    adapted = load_network(str(folder), lora_rank=4, seed=1).adapted
    with pytest.raises(MismatchError, match="do not fit this policy"):
        Fit(adapted, EXAMPLES, CrossEntropy(), SETTINGS).load_state(tmp_path)
    with pytest.raises(NotFoundError, match="is not a saved state"):
        Fit(network, EXAMPLES, CrossEntropy(), SETTINGS).load_state(tmp_path / "none")


def test_what_on_step_raises_ends_the_run_between_two_steps(network: PreTrainedModel) -> None:
    def stop(step: FitStep) -> None:
        if step.number == 2:
            raise KeyboardInterrupt

    fit = Fit(network, EXAMPLES, CrossEntropy(), SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        fit.run(stop)
    assert fit.version == 2
    later: list[FitStep] = []
    fit.run(later.append)
    assert [step.number for step in later] == [3, 4, 5, 6]


def test_an_adapter_s_dropout_changes_the_training_and_not_the_trained_network(
    folder: Path,
) -> None:
    losses = {}
    for p in (0.0, 0.5):
        adapted = load_network(str(folder), lora_rank=4, seed=1).adapted
        seed_dropout(adapted, p)
        settings = replace(SETTINGS, warmup_steps=0, schedule="constant")
        losses[p] = [step.loss for step in run(adapted, settings)]
        measured = {CrossEntropy().loss_sum(adapted, EXAMPLES).item() for _ in range(3)}
        assert len(measured) == 1
    # B is 0 in the first step, so dropout shows from the second on.
    assert losses[0.0][0] == losses[0.5][0]
    assert losses[0.0][2] != losses[0.5][2]


class Margin:
    """A hook: the first token of each target pair is preferred by a margin loss."""

    def num_tokens(self, item: tuple[Example, Example]) -> int:
        """Of the longer one."""
        return max(len(one.tokens) for one in item)

    def micro_batches(
        self,
        _network: LoadedNetwork,
        items: Sequence[tuple[Example, Example]],
        max_tokens: int,
    ) -> list[list[int]]:
        """By length."""
        return length_batches([self.num_tokens(item) for item in items], max_tokens)

    def num_targets(self, item: tuple[Example, Example]) -> int:  # noqa: ARG002  # the protocol's
        """A pair counts once."""
        return 1

    def loss_sum(self, network: LoadedNetwork, items: Sequence[tuple[Example, Example]]) -> Tensor:
        """-log sigmoid of the difference of log-likelihoods."""
        losses = [
            -torch.nn.functional.logsigmoid(
                CrossEntropy().loss_sum(network, [rejected])
                - CrossEntropy().loss_sum(network, [chosen])
            )
            for chosen, rejected in items
        ]
        return torch.stack(losses).sum()


def test_another_objective_is_a_hook(network: PreTrainedModel) -> None:
    pairs = list(zip(EXAMPLES[:5], EXAMPLES[5:], strict=True))
    steps: list[FitStep] = []
    settings = replace(SETTINGS, num_steps=20, batch_size=5)
    Fit(network, pairs, Margin(), settings).run(steps.append)
    assert steps[-1].loss < 0.1 * steps[0].loss
    assert steps[0].num_targets == 5


def test_nothing_to_train_is_refused(folder: Path) -> None:
    network, _ = load_base(str(folder))
    with pytest.raises(ValueError, match="found 0 and 10"):
        Fit(network.requires_grad_(requires_grad=False), EXAMPLES, CrossEntropy(), SETTINGS)
    network.requires_grad_(requires_grad=True)
    with pytest.raises(ValueError, match="and 0"):
        Fit(network, [], CrossEntropy(), SETTINGS)


@given(num_items=st.integers(1, 40), batch_size=st.integers(1, 50), seed=st.integers(0, 5))
def test_every_epoch_sees_every_item_once(num_items: int, batch_size: int, seed: int) -> None:
    per_epoch = steps_per_epoch(num_items, batch_size)
    epochs = [
        [
            index
            for step in range(epoch * per_epoch, (epoch + 1) * per_epoch)
            for index in batch_of_step(step, num_items, batch_size, seed)
        ]
        for epoch in range(2)
    ]
    assert all(sorted(epoch) == list(range(num_items)) for epoch in epochs)
    assert num_items < 10 or epochs[0] != epochs[1]


def test_prompts_that_begin_alike_share_a_batch() -> None:
    prompts = [[*([schema] * 9), number] for number in range(4) for schema in range(3)]
    clusters = cluster_by_prefix(prompts)
    batches = [batch_of_step(step, 12, 4, seed=0, clusters=clusters) for step in range(6)]
    assert all(len({prompts[index][0] for index in batch}) == 1 for batch in batches)
    epochs = [[index for batch in batches[at : at + 3] for index in batch] for at in (0, 3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 2


def test_a_state_continues_with_the_same_clusters_only(
    network: PreTrainedModel, tmp_path: Path
) -> None:
    together = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    Fit(network, EXAMPLES, CrossEntropy(), SETTINGS, clusters=together).save_state(tmp_path)
    Fit(network, EXAMPLES, CrossEntropy(), SETTINGS, clusters=together).load_state(tmp_path)
    with pytest.raises(MismatchError, match="other data or settings"):
        Fit(network, EXAMPLES, CrossEntropy(), SETTINGS).load_state(tmp_path)


def test_a_fit_that_shares_prefixes_takes_the_same_steps_up_to_rounding(folder: Path) -> None:
    def losses(*, shares_prefixes: bool) -> list[float]:
        settings = replace(SETTINGS, num_steps=4, batch_size=10, learning_rate=1e-3)
        steps: list[FitStep] = []
        network, _ = load_base(str(folder))
        network.requires_grad_(requires_grad=True)
        Fit(network, ALIKE, CrossEntropy(shares_prefixes=shares_prefixes), settings).run(
            steps.append
        )
        return [step.loss for step in steps]

    alone, together = losses(shares_prefixes=False), losses(shares_prefixes=True)
    assert together == pytest.approx(alone, rel=1e-4)
    assert together != alone  # else nothing was shared


def test_the_learning_rate_rises_linearly_and_falls_as_asked() -> None:
    def factors(**options: object) -> list[float]:
        settings = {"warmup_steps": 0, "final_factor": 0.0} | options
        return [learning_rate_factor(step, 4, **settings) for step in range(4)]  # type: ignore[arg-type]

    assert factors(schedule="constant") == [1, 1, 1, 1]
    assert factors(schedule="linear") == pytest.approx([1, 0.75, 0.5, 0.25])
    assert factors(schedule="cosine") == pytest.approx([1, 0.853553, 0.5, 0.146447], abs=1e-6)
    assert factors(schedule="constant", warmup_steps=4) == [0.25, 0.5, 0.75, 1]
    assert factors(schedule="linear", final_factor=0.2) == pytest.approx([1, 0.8, 0.6, 0.4])
