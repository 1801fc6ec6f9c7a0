"""What a run can say, and how it is written: the only code that producer and consumers share.

An event is an envelope (`event.Event`) around a payload, one class per fact (`training`, `step`,
`group`, `rollout`, `turn`, ...). `catalogue` lists every payload; `wire` turns events into bytes
and back; `local_log` says how they lie on disk. Nothing here does I/O, reads the environment or
knows a clock.
"""
