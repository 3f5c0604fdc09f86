"""A judge on a sentence-pair model of your own; see `docs/how-to/pair-models.md`."""
