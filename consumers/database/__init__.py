"""The PostgreSQL that the tables are in.

Where it is, how to connect, its revisions, and who may write.
"""
