"""Projections: views of a ledger as pure functions of its events."""
