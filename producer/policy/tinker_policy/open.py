"""Opens a policy at Tinker by the name of its base model; rejects unusable settings."""

from collections.abc import Sequence

from producer.errors import MismatchError, UsageError
from producer.policy.compute_settings import PolicySettings
from producer.policy.formats import fitting_format, sees_no_screens
from producer.policy.prompts import PromptLimits
from producer.policy.tinker_policy.policy import TinkerPolicy
from producer.policy.tinker_policy.policy_files import PolicyFiles, read_policy_files
from producer.policy.tinker_policy.prompts import Prompts
from producer.policy.tinker_policy.service import TinkerService
from producer.policy.torch_policy.render import Renderer


def open_tinker(
    service: TinkerService,
    settings: PolicySettings,
    *,
    max_tokens: int,
    checkpoint: str | None = None,
    instructions: Sequence[str] = (),
) -> TinkerPolicy:
    """Open the policy with its adapter at Tinker.

    `checkpoint`: path at Tinker of the initial weights; None for a fresh adapter. `instructions`:
    the tasks' instructions; the context must have room for their first prompts.

    Raises NotFoundError if Tinker does not train the model or has no such checkpoint, UsageError
    for a refused key or for a policy without a vision tower if there are screens, and
    UnreachableError.
    """
    model_name, screen_px = settings.folder, settings.screen_px
    service.check_reachable()
    base = service.trainable_base(model_name)
    files = read_policy_files(model_name)
    if screen_px is not None and not files.sees_screens:
        raise UsageError(sees_no_screens(model_name, files.model_type))
    written = fitting_format(settings, files.folder, files.model_type, files.image_scale)
    limits = (base.max_context_tokens, files.max_context_tokens)
    limit = min((tokens for tokens in limits if tokens is not None), default=None)
    prompts = Prompts(
        files,
        Renderer(
            files.processor if files.sees_screens else files.tokenizer,
            files.image_token,
            written.system_prompt,
        ),
        PromptLimits(settings.max_recent_turns, limit),
    )
    _check_prompts(files, prompts, limit, instructions, screen_px, max_tokens)
    client = (
        service.create(settings)
        if checkpoint is None
        else service.restore(checkpoint, with_optimizer=False)
    )
    return TinkerPolicy(service, client, files, prompts, written)


def rank_of(service: TinkerService, model_name: str, path: str) -> int | None:
    """The rank of the adapter at `path`; None if the service does not report it.

    Raises NotFoundError if nothing is there, MismatchError if it belongs to another base model.
    """
    service.check_reachable()
    saved = service.saved_weights(path)
    if saved.base_model != model_name:
        message = f"load_checkpoint_path: {path} is of {saved.base_model}, not of {model_name}"
        raise MismatchError(message)
    return saved.lora_rank


def _check_prompts(
    files: PolicyFiles,
    prompts: Prompts,
    limit: int | None,
    instructions: Sequence[str],
    screen_px: tuple[int, int] | None,
    max_tokens: int,
) -> None:
    """Raises UsageError if a first prompt and a completion exceed the context."""
    lengths = [prompts.first_length(instruction, screen_px) for instruction in {*instructions}]
    longest = max(lengths, default=0)
    if limit is not None and longest + max_tokens > limit:
        message = (
            f"max_tokens: Tinker's {files.name!r} takes {limit:,} tokens, but the longest first"
            f" prompt has {longest:,} and max_tokens is {max_tokens:,}; choose a smaller max_tokens"
        )
        raise UsageError(message)
