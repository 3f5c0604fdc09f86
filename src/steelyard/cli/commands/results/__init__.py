"""Commands that show, label, watch and prune results."""
