"""Structured log events, spans and metrics."""
