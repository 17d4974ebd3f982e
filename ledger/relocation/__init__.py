"""Export, import, move and replay of whole ledgers and tables."""
