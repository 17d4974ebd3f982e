"""`python -m ledger` is the `lakeledger` command."""

from __future__ import annotations

import sys

from ledger.cli import main

if __name__ == "__main__":
    sys.exit(main())
