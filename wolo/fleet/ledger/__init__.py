"""The ledger of a batch: which tasks there are, who works on them, and their results."""
