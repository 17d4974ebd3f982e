"""Verification: commits, side files, caches and data files against the log."""
