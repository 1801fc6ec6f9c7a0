"""Rollouts on many hosts: a trainer assigns them through a Kafka topic, and workers run them.

Workers are members of one consumer group. A worker emits the events of its rollouts itself; the
trainer reads their results from the log, as a resumed training does.
"""
