from __future__ import annotations

from tests.cli.conftest import installed

__all__ = ["installed"]
