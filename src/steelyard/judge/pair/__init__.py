"""A judge on a sentence-pair model of your own; see `docs/pair-models.md`."""
