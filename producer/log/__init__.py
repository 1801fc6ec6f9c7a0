"""Appending to the log: the local log, Kafka, and the spool and shipper between them."""
