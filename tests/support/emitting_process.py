"""A process for tests to kill: emits for ever and prints every acknowledged event.

Called as `python -m tests.support.emitting_process NUM_STREAMS`; the environment
describes its installation.
"""

import sys
from itertools import count
from uuid import uuid4

from producer.emit import Emitter
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested


def main() -> None:
    """Emit on some streams in turn, with a blob now and then.

    Each line on stdout is `subject sequence ref` of an acknowledged event.
    """
    subjects = [f"environment/{uuid4()}" for _ in range(int(sys.argv[1]))]
    with Emitter.open() as emitter:
        for number in count(1):
            waiting = []
            for subject in subjects:
                content = f"{subject} {number}".encode() * 50
                ref = emitter.put_blob(content) if number % 5 == 0 else "-"
                created = EnvironmentRequested(
                    env_type="android_sim", box_type="android", config={"ref": ref}
                )
                payload = created if number == 1 else EnvironmentCreationStarted()
                waiting.append((subject, ref, emitter.stream(subject).emit(payload)))
            for subject, ref, acknowledgement in waiting:
                acknowledgement.wait(30)
                sys.stdout.write(f"{subject} {number} {ref}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
