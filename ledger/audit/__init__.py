"""Audit: history queries, comparison of states, and undo."""
