"""Text-to-SQL data sets: BIRD's and Spider's layouts, and small synthetic ones by seed."""
