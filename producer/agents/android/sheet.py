"""A contact sheet of tasks: each one's first screen on the simulated phone, as one HTML file."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from producer.agents.android.sim.device.sim import AndroidSim
from producer.task import Task

STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem; background: #fbfaf7; color: #1d2328; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .7rem; background: #fff; border: 1px solid #dfdcd3; }
img { width: 100%; height: auto; display: block; border-radius: 6px; }
figcaption { margin-top: .5rem; overflow-wrap: anywhere; }
code, small { display: block; color: #69737c; unicode-bidi: isolate; }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def task_sheet(tasks: Sequence[Task], seed: int) -> Iterator[str]:
    """Parts of the file: its head, each task as the episode of this seed begins, its end.

    Raises EnvironmentFailedError if a task cannot be set up.
    """
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tasks</title><style>{STYLE}</style></head><body>"
        f"<h1>{len(tasks)} tasks, seed {seed}</h1><main>\n"
    )
    phone = AndroidSim()
    for task in tasks:
        screen = phone.open(task, seed)
        facts = (task.difficulty, task.category, f"{task.max_steps} turns", _judged(task))
        yield (
            f'<figure id="{escape(task.task_id)}"><img alt="first screen"'
            f' width="{screen.width_px}" height="{screen.height_px}"'
            f' src="data:image/png;base64,{b64encode(screen.png).decode()}"><figcaption>'
            f"<code>{escape(task.task_id)}</code>{escape(task.description)}"
            f"<small>{escape(' · '.join(filter(None, facts)))}</small></figcaption></figure>\n"
        )
        phone.close()
    yield "</main></body></html>\n"


def _judged(task: Task) -> str:
    if task.validation_query is None:
        return "no validator"
    return f"{task.validation_query} = {task.expected_result}"
