"""`make bench`: what emitting, projecting and rebuilding cost, in CPU-microseconds and rates, beside plain COPY of the same rows."""
