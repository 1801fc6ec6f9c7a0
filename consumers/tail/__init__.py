"""`cua-project tail`: which records to read, in which order, and how to print them."""
