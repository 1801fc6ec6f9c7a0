"""A process that emits for ever and prints the number of every fact that was acknowledged.

What the tests kill.

Called as `python -m tests.producer.emit.emitting_process NUM_STREAMS`; its installation is the
environment's.
"""

import sys
from uuid import uuid4

from producer.emit import Emitter
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested


def main() -> None:
    """Facts on some streams in turn, a blob now and then.

    Each line on stdout is `subject sequence ref` of an acknowledged fact.
    """
    subjects = [f"environment/{uuid4()}" for _ in range(int(sys.argv[1]))]
    with Emitter.open() as emitter:
        number = 0
        while True:
            number += 1
            waiting = []
            for subject in subjects:
                ref = (
                    emitter.put_blob(f"{subject} {number}".encode() * 50)
                    if number % 5 == 0
                    else "-"
                )
                created = EnvironmentRequested(
                    env_type="android_sim", box_type="android", config={"ref": ref}
                )
                waiting.append(
                    (
                        subject,
                        ref,
                        emitter.stream(subject).emit(
                            created if number == 1 else EnvironmentCreationStarted()
                        ),
                    )
                )
            for subject, ref, acknowledgement in waiting:
                acknowledgement.wait(30)
                sys.stdout.write(f"{subject} {number} {ref}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
