"""Avro containers and manifest references, common to all formats."""
