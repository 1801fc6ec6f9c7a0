"""The PostgreSQL that the tables are in: where it is, how to connect, its revisions, and who may write."""
