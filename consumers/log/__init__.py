"""Reads the log, the local one or Kafka: one interface, one file each."""
