"""What `cua-project doctor` looks at: this machine, the log, the database, the blobs."""
