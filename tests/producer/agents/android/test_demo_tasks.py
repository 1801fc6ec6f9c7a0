"""The demo tasks are sound: oracles solve them, from anywhere; doing nothing does not."""

from uuid import UUID, uuid5

import pytest

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.shell_judge import judge
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import NoisyOracle, oracle_action
from producer.agents.android.sim.oracle.soundness import (
    MAX_RANDOM_SHARE,
    check_tasks,
    random_agent,
    run_episode,
)
from producer.environments.environment import ActionRefusedError, Screenshot
from producer.policy.policy import SampleRequest
from producer.task import Task
from producer.tasks.overlap import goal_leakage

JUDGED = [task for task in demo_tasks() if task.is_judged]
SCREEN = Screenshot(b"", 360, 640)
"""The oracle looks at the phone's state, not at its screens."""
BY_ID = {task.task_id: task for task in demo_tasks()}


def test_all_hundred_tasks_are_there_over_five_categories_and_three_difficulties() -> None:
    tasks = demo_tasks()
    assert (
        len(tasks),
        sum(task.split == "train" for task in tasks),
        sum(task.split == "eval" for task in tasks),
    ) == (100, 80, 20)
    assert {task.category for task in JUDGED} == {
        "app",
        "settings",
        "navigation",
        "system",
        "input",
    }
    assert {task.difficulty for task in JUDGED} == {"easy", "medium", "hard"}
    assert len(JUDGED) == 93
    assert len({task.description for task in JUDGED}) == 93, "every instruction is its own"


@pytest.mark.parametrize("task", JUDGED, ids=lambda task: task.task_id)
def test_an_oracle_solves_the_task_within_its_turns_and_nobody_solves_it_by_doing_nothing(
    task: Task,
) -> None:
    (found,) = check_tasks([task], num_seeds=4, num_random=0)
    assert (found.oracle_successes, found.idle_successes) == (4, 0)
    assert found.oracle_turns is not None
    assert found.oracle_turns <= task.max_steps


@pytest.mark.parametrize(
    "task_id",
    ["train_07_go_home", "train_20_open_recents", "train_23_open_messages", "train_02_enable_wifi"],
)
def test_blind_actions_seldom_solve_even_the_easiest_tasks(task_id: str) -> None:
    solved = sum(
        run_episode(BY_ID[task_id], seed, random_agent(seed)).is_solved for seed in range(100)
    )
    assert solved / 100 <= MAX_RANDOM_SHARE


def test_a_task_that_is_solved_from_the_start_is_not_sound() -> None:
    task = Task("home", "home", "Be at home.", "easy", "app", 3, "is_home_screen", "True")
    (found,) = check_tasks([task], num_seeds=2, num_random=0)
    assert found.idle_successes == 2
    assert not found.is_sound


def run_noisily(task: Task, seed: int, noise: float) -> tuple[bool, list[str]]:
    """An episode of three times the turns, so that following is what is tested and not luck."""
    sim, episode = AndroidSim(), uuid5(UUID(int=0), f"{task.task_id}/{seed}")
    sim.start(task, seed)
    policy = NoisyOracle(noise=noise, seed=1)
    policy.attach(episode, sim)
    texts = []
    for turn in range(3 * task.max_steps):
        request = SampleRequest(episode, task, (), SCREEN, 1.0, 16, 1000 * seed + turn)
        (completion,) = policy.sample([request])
        texts.append(completion.text)
        (taken,) = completion.actions
        assert taken.action is not None
        if taken.action.type == "terminate":
            break
        try:
            sim.perform(taken.action)
        except ActionRefusedError:
            continue
    policy.forget(episode)
    return judge(task, sim.shell).success, texts


@pytest.mark.parametrize("task", JUDGED[::4], ids=lambda task: task.task_id)
def test_the_oracle_finds_its_way_from_wherever_noise_leads(task: Task) -> None:
    for seed in range(3):
        solved, texts = run_noisily(task, seed, noise=0.3)
        # Noise may uninstall the app that the task is about; the oracle then says that it failed.
        assert solved or texts[-1] == "terminate(failure)", texts


def test_a_noisy_oracle_says_the_same_for_the_same_seed_and_is_an_oracle_without_noise() -> None:
    task = BY_ID["train_03_max_brightness"]
    assert run_noisily(task, 5, noise=0.5) == run_noisily(task, 5, noise=0.5)
    solved, texts = run_noisily(task, 5, noise=0.0)
    assert solved
    assert texts[-1] == "terminate(success)"
    with pytest.raises(ValueError, match=r"noise 1\.5 is not a probability"):
        NoisyOracle(noise=1.5, seed=0)


def test_an_oracle_gives_up_honestly_when_the_task_became_impossible() -> None:
    task = BY_ID["train_78_disable_app_notifications"]
    sim = AndroidSim()
    sim.open(task, 0)
    sim.shell("pm uninstall com.example.testapp")
    assert oracle_action(task, sim)[0] == "terminate(failure)"


def test_leakage_names_the_training_tasks_that_share_a_goal() -> None:
    train = [task for task in demo_tasks() if task.split == "train"]
    leaks = goal_leakage(train, [task for task in demo_tasks() if task.split == "eval"])
    assert leaks["eval_05_enable_dark_theme"] == ("train_61_enable_dark_theme",)
    assert "eval_19_change_media_volume" not in leaks, "only the evaluation asks for one half"
    assert leaks["eval_02_dnd_mode_enable"] == ("train_31_enable_dnd_quick_settings",)
    # 16 of the recipe's 20, less eval_11, whose goal no validator knows.
    assert len(leaks) == 15
