"""Import of tables of other formats, and promotion; common parts."""
