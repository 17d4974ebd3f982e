"""The servers under the object stores, each started once, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.stores.servers import buckets
from tests.stores.servers.buckets import Server


def _server(name: str) -> Any:
    start: Callable[[Path], AbstractContextManager[Server]] = getattr(buckets, name)

    @pytest.fixture(scope="session", name=name)
    def fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
        with start(tmp_path_factory.mktemp(name)) as server:
            yield server

    return fixture


moto = _server("moto")
azurite = _server("azurite")
fake_gcs = _server("fake_gcs")
rclone = _server("rclone")
s3rver = _server("s3rver")
gcp_emulator = _server("gcp_emulator")
