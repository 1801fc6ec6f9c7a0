"""Which log an installation reads: Kafka when it is configured, else the local log."""

from consumers.log.local import LocalLogReader
from consumers.log.reader import LogReader
from schemas.installation import Installation


def open_reader(installation: Installation) -> LogReader:
    """A reader of the installation's log. UnreachableError: Kafka cannot be reached."""
    if installation.kafka_bootstrap_servers is None:
        return LocalLogReader(installation.local_log_path, topic_prefix=installation.topic_prefix)
    # Importing kafka takes a tenth of a second.
    from consumers.log.kafka import KafkaLogReader

    return KafkaLogReader(installation)
