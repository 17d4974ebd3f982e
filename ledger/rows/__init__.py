"""Writing of rows as data files of a table."""
