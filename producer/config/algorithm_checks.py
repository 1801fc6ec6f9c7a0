"""Which settings of the optimisation do not go together: a setting without effect is refused."""

from collections.abc import Iterator

from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.names import CLIPPED
from producer.config.optimisation import OptimisationFields


def algorithm_problems(fields: OptimisationFields, *, min_group_size: int) -> Iterator[str]:
    """One sentence per problem: `field: what is wrong; what to do`."""
    yield from _settings_of_another_advantage(fields)
    yield from _advantage_problems(fields, min_group_size)
    yield from _loss_problems(fields)
    yield from _kl_problems(fields)
    yield from _streaming_problems(fields)


def _settings_of_another_advantage(fields: OptimisationFields) -> Iterator[str]:
    name = fields.advantage
    for other, advantage in ADVANTAGES.items():
        if other == name or advantage.learned is None:
            continue
        for setting in advantage.learned.settings.model_fields:
            if getattr(fields, setting) != _default(setting):
                yield f"{setting}: has no effect on the advantage {name}; omit it, or use {other}"


def _advantage_problems(fields: OptimisationFields, min_group_size: int) -> Iterator[str]:
    name = fields.advantage
    smallest = ADVANTAGES[name].min_group_size
    if min_group_size < smallest:
        yield f"min_group_size: {name} compares the rollouts of a group; use {smallest} or more"
    if fields.advantage_by_std and name != "mean_centered":
        yield (
            f"advantage_by_std: has no effect on the advantage {name}; omit it, or use"
            " mean_centered"
        )
    if fields.baseline != "none" and name != "reinforce":
        yield f"baseline: has no effect on the advantage {name}; omit it, or use reinforce"
    if fields.baseline == "group" and fields.group_size == 1:
        yield (
            "baseline: a group of one rollout is its own mean, so that nothing would be learnt; use"
            " a larger group_size, or moving"
        )
    if fields.baseline != "moving" and fields.baseline_momentum != _default("baseline_momentum"):
        yield f"baseline_momentum: has no effect with the baseline {fields.baseline}; omit it"


def _loss_problems(fields: OptimisationFields) -> Iterator[str]:
    for name in ("clip_ratio_low", "clip_ratio_high"):
        if getattr(fields, name) is not None and fields.loss_fn not in CLIPPED:
            yield (
                f"{name}: has no effect on the loss {fields.loss_fn}, which does not clip; omit"
                f" it, or use {', '.join(CLIPPED)}"
            )
    if fields.learning_rate_schedule == "constant" and fields.min_learning_rate_ratio:
        yield (
            "min_learning_rate_ratio: has no effect with a constant learning_rate_schedule; omit"
            " it, or use cosine"
        )
    if fields.dual_clip is not None and fields.loss_fn != "ppo":
        yield f"dual_clip: has no effect on the loss {fields.loss_fn}; omit it, or use ppo"


def _kl_problems(fields: OptimisationFields) -> Iterator[str]:
    if fields.kl_penalty_coef == 0:
        for name, default in (("kl_estimator", "k1"), ("kl_in", "advantage")):
            if getattr(fields, name) != default:
                yield f"{name}: has no effect with kl_penalty_coef 0; omit it, or set the weight"
    elif fields.kl_in == "loss" and fields.kl_estimator == "k1":
        yield (
            "kl_estimator: k1 has an expected gradient of 0 as a term of the loss; use k2 or k3, or"
            " kl_in advantage"
        )


def _streaming_problems(fields: OptimisationFields) -> Iterator[str]:
    if not fields.stream_minibatch:
        if fields.num_minibatches is not None:
            yield "num_minibatches: has no effect without stream_minibatch; omit it, or give both"
        return
    if fields.ppo_epochs > 1:
        yield "stream_minibatch: ppo_epochs passes over the whole step again; give one of them"
    if ADVANTAGES[fields.advantage].needs_whole_step:
        yield (
            f"stream_minibatch: the advantage {fields.advantage} compares over the whole step,"
            " which a minibatch does not see; use one that compares within a group, such as"
            " mean_centered, grpo or rloo"
        )
    if fields.baseline == "moving":
        yield (
            "stream_minibatch: the baseline moving is of whole steps; use group or none, or omit"
            " stream_minibatch"
        )
    if fields.kl_penalty_coef != 0 and fields.kl_in == "advantage":
        yield (
            "stream_minibatch: a KL penalty in the advantages is relative to the mean of the whole"
            " step, which a minibatch does not see; use kl_in loss with kl_estimator k2 or k3"
        )
    if fields.max_steps_off_policy is not None:
        yield (
            "stream_minibatch: max_steps_off_policy overlaps rollouts and updates already; give one"
            " of them"
        )
    num_minibatches = fields.num_substeps * (fields.num_minibatches or 1)
    if num_minibatches > fields.groups_per_batch:
        yield (
            f"num_minibatches: {fields.groups_per_batch} groups make no {num_minibatches}"
            " minibatches, num_minibatches x num_substeps; use fewer, or more groups_per_batch"
        )


def _default(name: str) -> object:
    return OptimisationFields.model_fields[name].default
