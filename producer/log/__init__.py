"""Appending to the log: the local one, Kafka, and the spool with its shipper between them."""
