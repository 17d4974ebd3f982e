"""Iceberg's REST catalog over a ledger.

`routes` lists the endpoints; each other module has the handlers of one part of the protocol, as
rows. A handler takes the `IcebergCatalog` and a call.

Source: the Iceberg REST catalog specification 1.11.0; messages as Java's reference server has them,
where its compatibility kit compares them.
"""
