"""Data files: footers, registration, live files."""
