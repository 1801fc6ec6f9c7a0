"""The rubric of a run: labels of steps, their scores by a reward model, a user's rewards."""

from producer.config import RunConfig
from producer.environments.environment import Environment
from producer.policy.policy import Completion
from producer.rewards import RewardError
from producer.rollouts.rubric import CompletionReward, Grade, Rubric
from producer.rollouts.step_labels import label_steps
from producer.task import Task
from producer.training.own_rewards import rewarding_with
from producer.training.step_completions import make_labeller
from producer.training.step_scoring import Scorer, scoring_with
from producer.validators.verdict import Verdict


def make_rubric(config: RunConfig, policy: object, scorer: Scorer | None) -> Rubric | None:
    """The configured rubric for completions of `policy`; None: there is none. UsageError."""
    labeller = make_labeller(config, policy)
    score = scoring_with(scorer, policy, config)
    reward = rewarding_with(config, policy)
    if labeller is None and score is None and reward is None:
        return None

    def rubric(
        environment: Environment, task: Task, completion: Completion, verdict: Verdict | None
    ) -> Grade:
        labels = scores = None
        if labeller is not None:
            labels = label_steps(labeller, environment, task, completion, verdict)
        if score is not None:
            scores = score(task, completion)
        rewarded: CompletionReward | RewardError | None = None
        if reward is not None:
            try:
                rewarded = reward(task, completion, scores)
            except RewardError as error:
                rewarded = error
        return Grade(labels, scores, rewarded)

    return rubric
