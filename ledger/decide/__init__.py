"""Decisions: requested changes, checked against a state, become events. Pure."""
