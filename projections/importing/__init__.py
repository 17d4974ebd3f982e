"""Import and promotion of tables of other formats; common parts."""
