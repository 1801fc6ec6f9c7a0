"""Stage one of the warm-up: aligns the vision tower's patch features with the token embeddings.

A patch's feature is compared with the embeddings (tied with the output layer): all of its
dimensions with the words of the element it shows, their first half with the element's x and their
second half with its y. The language model can then find a word of its instruction among the patches
by similarity, and read the place off the patch it finds. Without this stage, so small a network
does not learn to ground names in screens within a laptop's time.

Axes: S screens, N patches of a screen, M patches of a batch, C pixels of a patch, D dimensions, K
words, V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from producer.agents.android.policy.examples import NO_LABEL, Example
from producer.agents.android.policy.recipe import (
    SCREENS_PER_BATCH,
    WarmUpRecipe,
    learning_rate_factor,
)
from producer.agents.android.policy.vocabulary import NUM_COORDINATES
from producer.policy.torch_policy.render import Grid
from producer.supervised.optimizers import accumulate_gradients, set_learning_rate

SCREENS_PER_MICRO_BATCH = 16


def encode_patches(visual: nn.Module, patches_SNC: Tensor, grid: Grid) -> Tensor:
    """The vision tower's features [S, N, D] of uint8 patches, `grid` of them a screen."""
    num_screens, num_patches, _ = patches_SNC.shape
    pixels = patches_SNC.flatten(0, 1).float() / 127.5 - 1
    grids = torch.tensor([[1, grid.rows, grid.columns]] * num_screens)
    features: Tensor = visual(pixels, grid_thw=grids).pooler_output
    return features.view(num_screens, num_patches, -1)


def train_alignment(
    network: Any,
    processor: Any,
    examples: Sequence[Example],
    recipe: WarmUpRecipe,
    on_step: Callable[[int, float], None],
) -> None:
    """Train the vision tower and the embeddings in place; `on_step` gets (steps done, loss)."""
    patches_SNC = torch.cat([example.patches_INC for example in examples])
    names_SNK = torch.cat([example.names_INK for example in examples])
    centers_SN2 = torch.cat([example.centers_IN2 for example in examples])
    grid = examples[0].grid
    embeddings_VD = network.get_input_embeddings().weight
    numbers = [str(number) for number in range(NUM_COORDINATES)]
    coordinates = torch.tensor(processor.tokenizer.convert_tokens_to_ids(numbers))
    parameters = [*network.model.visual.parameters(), embeddings_VD]
    num_steps, rate = recipe.alignment_steps, recipe.alignment_learning_rate
    optimizer = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    generator = torch.Generator().manual_seed(recipe.seed)
    network.train()
    for step in range(num_steps):
        set_learning_rate(optimizer, rate * learning_rate_factor(step, num_steps))
        batch = torch.randint(0, len(patches_SNC), (SCREENS_PER_BATCH,), generator=generator)
        num_labelled = int((names_SNK[batch][..., 0] != NO_LABEL).sum())

        def loss_of(screens: Tensor, num_labelled: int = num_labelled) -> Tensor:
            features_SND = encode_patches(network.model.visual, patches_SNC[screens], grid)
            loss = alignment_loss(
                features_SND.flatten(0, 1),
                names_SNK[screens].flatten(0, 1),
                centers_SN2[screens].flatten(0, 1),
                embeddings_VD=embeddings_VD,
                coordinates=coordinates,
            )
            return loss / num_labelled

        optimizer.zero_grad()
        micro_batches = [
            batch[start : start + SCREENS_PER_MICRO_BATCH]
            for start in range(0, SCREENS_PER_BATCH, SCREENS_PER_MICRO_BATCH)
        ]
        loss = accumulate_gradients(loss_of, micro_batches, parameters).loss
        optimizer.step()
        on_step(step + 1, loss)


def alignment_loss(
    features_MD: Tensor,
    names_MK: Tensor,
    centers_M2: Tensor,
    *,
    embeddings_VD: Tensor,
    coordinates: Tensor,
) -> Tensor:
    """Sum over labelled patches: cross-entropy of the name's words + half of each coordinate's.

    `coordinates` are the token ids of the numbers 0 to 99.
    """
    is_labelled = names_MK[:, 0] != NO_LABEL
    features, names = features_MD[is_labelled], names_MK[is_labelled]
    centers = centers_M2[is_labelled]
    logprobs = functional.log_softmax(features @ embeddings_VD.T, dim=-1)
    is_word = names != NO_LABEL
    word_logprobs = logprobs.gather(1, names.clamp(min=0)) * is_word
    name_loss = -(word_logprobs.sum(1) / is_word.sum(1)).sum()
    half = features.shape[1] // 2
    x_loss = functional.cross_entropy(
        features[:, :half] @ embeddings_VD[coordinates][:, :half].T, centers[:, 0], reduction="sum"
    )
    y_loss = functional.cross_entropy(
        features[:, half:] @ embeddings_VD[coordinates][:, half:].T, centers[:, 1], reduction="sum"
    )
    return name_loss + 0.5 * x_loss + 0.5 * y_loss
