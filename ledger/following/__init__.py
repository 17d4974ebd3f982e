"""Background projection of followed tables."""
