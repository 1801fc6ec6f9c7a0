"""ParsedRecord the log, the local one or Kafka: one interface, a file for each."""
