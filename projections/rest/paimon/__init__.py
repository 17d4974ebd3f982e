"""Paimon's REST catalog, the DLF API: one module a group of endpoints, listed in `routes`.

`catalog` is the service that all of them take, `requests` has what their requests have in common,
`paging` their lists, `errors` their error bodies. Bodies are objects of `projections.dlf`.
"""
