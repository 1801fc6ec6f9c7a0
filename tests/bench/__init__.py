"""`make bench`: CPU cost and rates of emitting, projecting and rebuilding, beside plain COPY."""
