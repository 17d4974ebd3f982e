"""Opening of ledgers and tables."""
