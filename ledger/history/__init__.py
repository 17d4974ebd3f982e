"""Verification, older states, erasure and garbage."""
