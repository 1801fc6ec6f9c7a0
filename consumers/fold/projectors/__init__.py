"""Which rows an event is, a file per entity: one Projector each, listed in `registry`."""
