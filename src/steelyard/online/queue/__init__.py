"""Where turns wait, and the ledger of what became of them."""
