"""Read-only web page over a ledger, rendered by the server without scripts.

Views are functions from a ledger to values that templates show; `routes` checks requests and runs
views in worker threads. Nothing here commits.
"""
