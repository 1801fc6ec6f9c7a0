"""Stage one: the vision tower learns to say, patch by patch, what a screen shows and where, in the words the policy speaks.

A patch's feature is compared with the token embeddings (tied with the output layer): over all of its dimensions for the name, their first
half for x and the second for y. So the language model later finds a word of its instruction among the patches by likeness, and reads
the place off what it finds. Without this, a network this small does not learn to point in any time that a laptop has.
Axes: S screens, N patches, C pixels of a patch, D dimensions, K words.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from producer.demo_policy.examples import NOTHING, Example
from producer.demo_policy.learning_rate import share_of_rate
from producer.demo_policy.words import NUM_NUMBERS
from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map

SCREENS_PER_BATCH = 64
SCREENS_PER_PASS = 16
MAX_GRADIENT_NORM = 1.0


def encode_screens(
    visual: nn.Module, patches_SNC: Tensor, rows: int, columns: int
) -> Tensor:  # axes
    """Features [S, N, D] of screens whose pixels are uint8."""
    num_screens, num_patches, _ = patches_SNC.shape
    pixels = patches_SNC.flatten(0, 1).float() / 127.5 - 1
    grids = torch.tensor([[1, rows, columns]] * num_screens)
    features: Tensor = visual(pixels, grid_thw=grids).pooler_output
    return features.view(num_screens, num_patches, -1)


def learn_to_see(
    network: Any,  # transformers
    processor: Any,  # transformers
    examples: Sequence[Example],
    *,
    num_steps: int,
    learning_rate: float,
    seed: int,
    on_step: Callable[[int, float], None],
) -> None:
    """Train the vision tower and the embeddings in place; `on_step` gets (steps done, loss)."""
    patches = torch.cat([example.patches_INC for example in examples])
    names = torch.cat([example.names_INK for example in examples])
    places = torch.cat([example.places_IN2 for example in examples])
    grid = examples[0].grid
    embeddings = network.get_input_embeddings().weight
    numbers = torch.tensor(
        processor.tokenizer.convert_tokens_to_ids([str(number) for number in range(NUM_NUMBERS)])
    )
    parameters = [*network.model.visual.parameters(), embeddings]
    optimizer = torch.optim.AdamW(
        parameters, lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    generator = torch.Generator().manual_seed(seed)
    network.train()
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * share_of_rate(step, num_steps)
        chosen = torch.randint(0, len(patches), (SCREENS_PER_BATCH,), generator=generator)
        num_shown = int((names[chosen][..., 0] != NOTHING).sum())

        def one_pass(
            screens: Tensor, num_shown: int = num_shown
        ) -> tuple[float, tuple[Tensor | None, ...]]:
            features = encode_screens(
                network.model.visual, patches[screens], grid.rows, grid.columns
            ).flatten(0, 1)
            shown, where = names[screens].flatten(0, 1), places[screens].flatten(0, 1)
            loss = alignment_loss(features, shown, where, embeddings, numbers) / num_shown
            return float(loss.detach()), torch.autograd.grad(loss, parameters, allow_unused=True)

        optimizer.zero_grad()
        total = 0.0
        passes = [
            chosen[start : start + SCREENS_PER_PASS]
            for start in range(0, SCREENS_PER_BATCH, SCREENS_PER_PASS)
        ]
        for loss, gradients in parallel_map(one_pass, passes, embeddings.device):
            add_gradients(parameters, gradients)
            total += loss
        torch.nn.utils.clip_grad_norm_(parameters, MAX_GRADIENT_NORM)
        optimizer.step()
        on_step(step + 1, total)


def alignment_loss(
    features_MD: Tensor,  # axes
    names_MK: Tensor,  # axes
    places_M2: Tensor,  # axes
    embeddings_VD: Tensor,  # axes
    numbers: Tensor,
) -> Tensor:
    """Cross-entropy of the names' words, plus half of each coordinate's, summed over the patches that show something."""
    shows = names_MK[:, 0] != NOTHING
    features, names, places = features_MD[shows], names_MK[shows], places_M2[shows]
    logprobs = functional.log_softmax(features @ embeddings_VD.T, dim=-1)
    is_word = names != NOTHING
    of_words = logprobs.gather(1, names.clamp(min=0)) * is_word
    name_loss = -(of_words.sum(1) / is_word.sum(1)).sum()
    half = features.shape[1] // 2
    x_loss = functional.cross_entropy(
        features[:, :half] @ embeddings_VD[numbers][:, :half].T, places[:, 0], reduction="sum"
    )
    y_loss = functional.cross_entropy(
        features[:, half:] @ embeddings_VD[numbers][:, half:].T, places[:, 1], reduction="sum"
    )
    return name_loss + 0.5 * x_loss + 0.5 * y_loss
