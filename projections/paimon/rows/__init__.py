"""Paimon's binary rows: how values lie in bytes, in manifests and in statistics.

Others may import:
    `binary_row`  a row in bytes, and its bucket
    `types`       how each type lies in a row, and the slots that it lies in
    `values`      a file's values as the ledger has them, and back
    `bounds`      bounds of a column
"""
