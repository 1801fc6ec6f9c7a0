"""Events to rows: one file per entity with its Projector; `registry` lists them."""
