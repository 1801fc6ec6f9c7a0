"""Rollouts as a dataset: Parquet files in the layout that Hugging Face `datasets` opens.

    events (the log in stream order) -> trainings, rollouts (what they say) -> rows -> dataset

Reads the log and the blobs alone; no database.
"""
