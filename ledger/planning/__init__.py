"""Scan planning: filters, partition pruning, column bounds.

Source: the Iceberg specification, scan planning.
"""
