"""What `cua-project gc` deletes: blobs that no event names, old tables, shipped records."""
