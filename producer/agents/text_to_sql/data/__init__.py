"""Text-to-SQL data sets: BIRD's and Spider's layouts, and small synthetic ones made from a seed."""
