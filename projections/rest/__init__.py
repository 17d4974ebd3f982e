"""HTTP server of a ledger: catalog protocols of table formats over one ledger.

`app` builds the application from rows of endpoints, `worker_pool` runs their handlers, `server`
binds and stops, `served_ledger` is what all protocols serve. Each protocol is a package with its
endpoints and its error bodies: `iceberg` is Iceberg's REST catalog, `paimon` is Paimon's, which is
the DLF API. Neither imports the other. Nothing here is imported by `ledger` or by the packages of
formats. Needs the extra `serve`.
"""
