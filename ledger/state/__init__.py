"""States of tables and catalogs, and the builders that fold events into them. Pure."""
