"""Each architecture in the hub's layout: our numbers are those of plain transformers and peft."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from PIL import Image
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)

from producer.algorithms.settings import UpdateSettings
from producer.environments.environment import Screenshot
from producer.policy.learner import Trajectory
from producer.policy.policy import SampledTokens
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy import cpu_parallel, update_passes
from producer.policy.torch_policy.adapters import merged_adapter
from producer.policy.torch_policy.architectures import target_names
from producer.policy.torch_policy.forward import EpisodeCaches, Segment, hidden_states, pad_segments
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.logprobs import completion_logprobs
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.prefill import prefill
from producer.policy.torch_policy.sampling import SamplingParameters, decode
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.state import save_checkpoint
from producer.policy.torch_policy.update import policy_gradient
from tests.support.checkpoints import ARCHITECTURES, VISUAL, write_checkpoint
from tests.support.rounding import rounding_of_forward
from tests.support.turns import trained_turn
from tests.support.update_settings import NO_OUTCOME

from .conftest import make_screen, make_task, randomize_adapter

EXPERTS = ["mlp.experts.down_proj", "mlp.experts.gate_up_proj"]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    write_checkpoint(folder, request.param, tied=request.param == "llama")
    return folder


@pytest.fixture
def adapted(folder: Path) -> Network:
    network = load_network(str(folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    return network


def is_visual(folder: Path) -> bool:
    return any(folder.name.startswith(f"{name}") for name in VISUAL)


def plain(folder: Path) -> Any:
    """As anybody would load it: no code of ours."""
    auto = AutoModelForImageTextToText if is_visual(folder) else AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=torch.float32)


def dialogue(network: Network, seed: int = 0) -> TokenSequence:
    """Two turns with random words; of a policy with screens each shows one, of other sizes."""
    words = torch.Generator().manual_seed(seed)
    screens: list[Screenshot] = []
    sequence = TokenSequence()
    for turn in range(2):
        sequence.tokens += torch.randint(0, 250, (7,), generator=words).tolist()
        if network.visual is not None:
            portrait = (turn + seed) % 2 == 0
            size = (90, 200) if portrait else (220, 80)
            screens.append(make_screen(10 * seed + turn, *size))
            grid = encoder_of(network).encode(screens[-1:])[0].grid
            start = network.tokenizer.convert_tokens_to_ids("<|vision_start|>")
            assert network.image_token is not None
            sequence.tokens += [start, *[network.image_token] * grid.num_tokens, start + 1]
        sequence.tokens += torch.randint(0, 250, (3,), generator=words).tolist()
        sequence.sampled_at += range(len(sequence.tokens), len(sequence.tokens) + 5)
        sequence.tokens += torch.randint(0, 250, (5,), generator=words).tolist()
    return replace(sequence, screenshots=screens)


def encoder_of(network: Network) -> ScreenEncoder:
    return ScreenEncoder(network.visual, network.processor)


def plain_logprobs(model: Any, folder: Path, sequence: TokenSequence) -> Tensor:
    """Of the completion tokens, by one standard forward pass over the dialogue."""
    tokens = torch.tensor([sequence.tokens])
    inputs: dict[str, Any] = {"input_ids": tokens}
    if sequence.screenshots:
        processor = AutoProcessor.from_pretrained(folder)
        images = [Image.open(io.BytesIO(shot.png)) for shot in sequence.screenshots]
        inputs |= processor.image_processor(images=images, return_tensors="pt")
        inputs["mm_token_type_ids"] = (tokens == model.config.image_token_id).int()
    logprobs = torch.log_softmax(model(**inputs).logits[0], dim=-1)
    at = torch.tensor(sequence.sampled_at)
    return logprobs[at - 1, tokens[0, at]]


def test_every_architecture_is_computed_in_bfloat16_with_gradients(folder: Path) -> None:
    # Experts of width 20: rows of 40 bytes, which torch's grouped_mm does not take.
    network = load_network(str(folder), 4, 1, None, choose_placement("cpu", "bfloat16"))
    randomize_adapter(network)
    exact = load_network(str(folder), 4, 1, None, choose_placement("cpu", "float32"))
    randomize_adapter(exact)
    sequence = dialogue(exact)
    ours_N, exact_N = (
        completion_logprobs(item, encoder_of(item), [sequence], 1.0) for item in (network, exact)
    )
    # Seven bits of mantissa, through three layers of random weights.
    assert (ours_N - exact_N).abs().mean() < 0.05 * exact_N.abs().mean()
    gradients = torch.autograd.grad(ours_N.sum(), network.trainable())
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)


def test_the_auto_classes_load_what_the_hub_stores_bit_for_bit(folder: Path) -> None:
    network = load_network(str(folder), lora_rank=4, seed=0)
    theirs = plain(folder).state_dict()
    ours = {
        name.replace(".base_layer", ""): tensor
        for name, tensor in network.base.state_dict().items()
        if ".lora_" not in name
    }
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert network.tokenizer.decode([5]) == AutoTokenizer.from_pretrained(folder).decode([5])


def test_log_probs_of_joined_sequences_are_those_of_plain_peft(
    folder: Path, adapted: Network, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, adapted)
    theirs = PeftModel.from_pretrained(plain(folder), tmp_path).eval()
    sequences = [dialogue(adapted, seed) for seed in (1, 2, 3)]
    ours = completion_logprobs(adapted, encoder_of(adapted), sequences, 1.0)
    with torch.no_grad():
        expected = torch.cat([plain_logprobs(theirs, folder, sequence) for sequence in sequences])
    bound = rounding_of_forward(adapted.base, float(expected.abs().max()))
    assert torch.allclose(ours, expected, rtol=0, atol=bound)
    unadapted = completion_logprobs(
        load_network(str(folder), lora_rank=4, seed=0), encoder_of(adapted), sequences, 1.0
    )
    assert float((ours - unadapted).detach().abs().max()) > 100 * bound


def test_gradients_are_those_of_plain_peft(folder: Path, adapted: Network, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, adapted)
    theirs = PeftModel.from_pretrained(plain(folder), tmp_path, is_trainable=True).eval()
    sequences = [dialogue(adapted, seed) for seed in (1, 2)]
    torch.autograd.backward(
        -completion_logprobs(adapted, encoder_of(adapted), sequences, 1.0).sum()
    )
    for one in sequences:
        torch.autograd.backward(-plain_logprobs(theirs, folder, one).sum())
    ours = dict(adapted.adapted.named_parameters())
    trained = {name: one for name, one in theirs.named_parameters() if one.requires_grad}
    assert {name for name, one in ours.items() if one.requires_grad} == set(trained)
    for name, parameter in trained.items():
        own, other = ours[name].grad, parameter.grad
        assert own is not None
        assert other is not None
        assert float((own - other).norm()) <= 1e-4 * float(other.norm()) + 1e-6, name


def test_prefill_and_cached_decoding_give_the_log_probs_of_one_plain_pass(
    folder: Path, adapted: Network, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, adapted)
    theirs = PeftModel.from_pretrained(plain(folder), tmp_path).eval()
    turns = dialogue(adapted, 5)
    first = turns.sampled_at[0]
    num_images = len(turns.screenshots) // 2
    screens = encoder_of(adapted).encode(turns.screenshots)
    caches = EpisodeCaches(adapted.cache_shape, adapted.device, adapted.base.dtype)
    cache = caches.load([None], 200)
    parameters = [SamplingParameters(1.0, 5, seed=3)]
    with torch.no_grad(), merged_adapter(adapted.adapted):
        opening = prefill(
            adapted, cache, [Segment(turns.tokens[:first], screens[:num_images])], [0]
        )
        one = decode(adapted, cache, opening, parameters).completions[0]
        # The next turn continues from the cache: the last token, and what the template adds.
        more = turns.tokens[first + 5 : turns.sampled_at[5]]
        cached = opening.num_cached[0] + len(one.tokens) - 1
        position = opening.next_positions[0] + len(one.tokens) - 1
        segment = Segment([one.tokens[-1], *more], screens[num_images:], position)
        following = prefill(adapted, cache, [segment], [cached])
        two = decode(adapted, cache, following, parameters).completions[0]
    tokens = [*turns.tokens[:first], *one.tokens, *more, *two.tokens]
    at = len(tokens) - len(two.tokens)
    sampled_at = [*range(first, first + len(one.tokens)), *range(at, len(tokens))]
    sequence = TokenSequence(tokens, turns.screenshots, sampled_at)
    with torch.no_grad():
        expected = plain_logprobs(theirs, folder, sequence)
    ours = torch.tensor([*one.logprobs, *two.logprobs])
    bound = rounding_of_forward(adapted.base, float(expected.abs().max()))
    assert torch.allclose(ours, expected, rtol=0, atol=bound)


def test_positions_are_those_of_transformers(adapted: Network) -> None:
    sequence = dialogue(adapted, 4)
    screens = encoder_of(adapted).encode(sequence.screenshots)
    batch = pad_segments([Segment(sequence.tokens, screens)], adapted)
    ours = adapted.positions(batch.positions_3BT)
    if adapted.visual is None:
        assert ours.tolist() == [list(range(len(sequence.tokens)))]
        return
    merge = adapted.base.config.vision_config.spatial_merge_size
    grids = torch.tensor(
        [[1, merge * screen.grid.rows, merge * screen.grid.columns] for screen in screens]
    )
    tokens = torch.tensor([sequence.tokens])
    is_image = tokens.eq(adapted.image_token or 0).int()
    theirs, deltas = adapted.base.model.get_rope_index(tokens, is_image, image_grid_thw=grids)
    assert ours.tolist() == theirs.tolist()
    assert batch.next_positions == [len(sequence.tokens) + int(deltas[0])]


def test_screen_features_are_those_of_the_whole_tower(folder: Path, adapted: Network) -> None:
    if adapted.visual is None:
        pytest.skip("a policy without screens")
    shots = [make_screen(1, 90, 200), make_screen(2, 220, 80)]
    ours = encoder_of(adapted).encode(shots)
    images = [Image.open(io.BytesIO(shot.png)) for shot in shots]
    inputs = AutoProcessor.from_pretrained(folder).image_processor(
        images=images, return_tensors="pt"
    )
    output = plain(folder).model.get_image_features(
        inputs["pixel_values"], inputs["image_grid_thw"]
    )
    for screen, expected in zip(ours, output.pooler_output, strict=True):
        assert torch.allclose(screen.features_ND, expected, atol=1e-4, rtol=1e-4)
    deep = getattr(output, "deepstack_features", None)
    assert [len(screen.deepstack_LND) for screen in ours] == [len(deep or ())] * 2
    if deep:
        ours_LND = torch.cat([screen.deepstack_LND for screen in ours], dim=1)
        theirs_LND = torch.stack([torch.cat(list(layer)) for layer in deep])
        assert torch.allclose(ours_LND, theirs_LND, atol=1e-4, rtol=1e-4)


def test_an_adapter_of_plain_peft_gives_the_same_outputs_here(folder: Path, tmp_path: Path) -> None:
    moe = folder.name.startswith("qwen3_vl_moe")
    config = LoraConfig(
        r=3,
        lora_alpha=5,
        target_modules=["q_proj", "v_proj"],
        target_parameters=EXPERTS if moe else None,
        task_type="CAUSAL_LM",
    )
    theirs = get_peft_model(plain(folder), config).eval()
    generator = torch.Generator().manual_seed(3)
    for parameter in theirs.parameters():
        if parameter.requires_grad:
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
    theirs.save_pretrained(tmp_path)
    network = load_network(str(folder), lora_rank=32, seed=0, adapter=tmp_path)
    sequence = dialogue(network)
    ours = completion_logprobs(network, encoder_of(network), [sequence], 1.0)
    with torch.no_grad():
        expected = plain_logprobs(theirs, folder, sequence)
    bound = rounding_of_forward(network.base, float(expected.abs().max()))
    assert torch.allclose(ours, expected, rtol=0, atol=bound)
    assert all(parameter.requires_grad for parameter in network.trainable())
    assert len(network.trainable()) == sum(
        parameter.requires_grad for parameter in theirs.parameters()
    )


def test_the_tower_the_router_and_the_base_stay_frozen(adapted: Network) -> None:
    trained = [name for name, one in adapted.adapted.named_parameters() if one.requires_grad]
    assert trained
    assert all(".lora_" in name for name in trained)
    assert not [name for name in trained if "visual" in name or ".gate.lora" in name]
    is_moe = bool(adapted.architecture.expert_parameters)
    assert any(".experts." in name for name in trained) == is_moe


def test_sampling_with_a_merged_adapter_restores_the_base_bit_for_bit(adapted: Network) -> None:
    before = {name: one.clone() for name, one in adapted.base.state_dict().items()}
    segment = Segment(list(range(20)), [])
    plainly = hidden_states(adapted, pad_segments([segment], adapted))
    with torch.no_grad(), merged_adapter(adapted.adapted):
        merged = hidden_states(adapted, pad_segments([segment], adapted))
    bound = 50 * rounding_of_forward(adapted.base, float(plainly.detach().abs().max()))
    assert torch.allclose(plainly, merged, rtol=0, atol=bound)
    after = adapted.base.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_targets_by_default_are_every_linear_layer_and_every_expert(folder: Path) -> None:
    network = load_network(str(folder), lora_rank=2, seed=0)
    architecture = network.architecture
    names = target_names(plain(folder), architecture, None)
    per_layer = 6 if architecture.expert_parameters else 7
    assert len(names) == 3 * per_layer


def test_an_update_does_not_depend_on_the_number_of_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Experts are adapted by changing their module during a pass: two passes must not meet.
    monkeypatch.setattr(
        update_passes,
        "micro_batches",
        lambda _network, sequences: [[[n]] for n in range(len(sequences))],
    )
    after = []
    for workers in (1, 4):
        monkeypatch.setattr(cpu_parallel, "num_workers", lambda _device, num=workers: num)
        network = load_network(str(folder), lora_rank=4, seed=1)
        randomize_adapter(network)
        trajectories = [
            Trajectory(
                make_task("any"),
                (trained_turn(None, sampled(torch.randint(0, 250, (60,)).tolist())),),
                advantage,
                NO_OUTCOME,
            )
            for seed, advantage in enumerate((1.0, -0.5, 0.25, -1.0, 2.0, -2.0))
            if torch.manual_seed(seed)
        ]
        settings = UpdateSettings(learning_rate=1e-2, seed=0)
        policy_gradient(
            network,
            encoder_of(network),
            make_optimizer(network.trainable()),
            trajectories,
            settings,
        )
        after.append([parameter.detach().clone() for parameter in network.trainable()])
    assert all(torch.equal(one, two) for one, two in zip(*after, strict=True))


def sampled(tokens: list[int]) -> SampledTokens:
    """A turn without screens, half prompt, half completion."""
    half = len(tokens) // 2
    return SampledTokens(
        None, tuple(tokens[:half]), 0, tuple(tokens[half:]), (-5.0,) * half, "stop"
    )
