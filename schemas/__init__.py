"""The events of a run and how they are encoded: the only code that producer and consumers share.

An event is an envelope (`event`) around a payload, one class per event type (`training`, `step`,
`group`, `rollout`, `turn` ...). `catalogue` lists the payloads; `wire` converts events to bytes and
back; `local_log` defines the log's file format. Nothing here reads the environment, and
little does I/O: `readable_log` opens that file to read it; `lock_holders` looks
at others. What both command lines do alike is here too: `interrupts`, `shutdown`, `log_lines`,
`standard_streams`, `advice` and `path_errors`.
"""
