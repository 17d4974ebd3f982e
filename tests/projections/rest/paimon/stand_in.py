"""Stand-in for the server class of pypaimon's own REST tests, backed by a ledger.

Their tests construct `RESTCatalogServer` and use `start`, `port`, `get_url` and `shutdown`, so that
most of them run against this project's server unchanged. To run them beside the project:

1. Copy `paimon-python/pypaimon/tests` of Paimon's repository to a folder outside of this one, as
   the package `pptests`, and replace `pypaimon.tests` by `pptests` in its files.
2. Replace `pptests/rest/rest_server.py` by the line
   `from tests.projections.rest.paimon.stand_in import RESTCatalogServer`.
3. Put that folder and this repository on `PYTHONPATH`, and run pytest over `pptests/rest` with
   `-o python_files='*_test.py test_*.py'`.

Tests that read the attributes or folders of their server, or replace its methods, fail.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import uvicorn

from ledger.log.request import now_millis
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.dlf import read
from projections.dlf.objects import ConfigResponse
from projections.rest.app import Serving, create_app
from projections.rest.authentication import (
    Authenticate,
    TokenHash,
    accept_everybody,
    bearer_authentication,
)
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.routes import paimon_protocol
from projections.rest.served_ledger import ServedLedger
from projections.rest.server import Address, bound_socket
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.lakes import lake_on

THREADS = 8


class RESTCatalogServer:
    """A server of a new ledger in a folder, with Paimon's protocol at the root.

    Args:
        data_path: The folder of all data.
        auth_provider: Their provider of the `Authorization` header; None for no authentication.
        config: Their configuration of clients.
        warehouse: The name of the ledger's folder.
        role_name: Not used: the name of a role of their cloud.
        token_json: Not used: the token of that role.
    """

    def __init__(
        self,
        data_path: str,
        auth_provider: Any,
        config: Any,
        warehouse: str,
        role_name: str | None = None,
        token_json: str | None = None,
    ) -> None:
        del role_name, token_json
        folder = Path(data_path, warehouse)
        folder.mkdir(parents=True, exist_ok=True)
        # Some tests look for files below the database's name, which is not its folder's.
        _link(folder / "default", "default.db")
        lake = lake_on(LocalStore(str(folder)), clock=now_millis, allowed=[data_path])
        lake.init()
        ledger = ServedLedger(handle_of(lake))
        told = {"defaults": config.defaults, "overrides": getattr(config, "overrides", None) or {}}
        catalog = PaimonCatalog(ledger, config=read(told, ConfigResponse))
        pool = WorkerPool(PoolLimits.of_threads(THREADS))
        serving = Serving(pool, authenticate=_authentication(auth_provider))
        app = create_app({"": paimon_protocol(catalog)}, serving)
        settings = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    def _run(self) -> None:
        with bound_socket(Address("localhost", 0)) as listening:
            self.port = listening.getsockname()[1]
            self._server.run(sockets=[listening])

    def start(self) -> None:
        """Start to serve, at any free port."""
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def get_url(self) -> str:
        """Return the server's URL."""
        return f"http://localhost:{self.port}"

    def shutdown(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._thread.join()


def _link(path: Path, target: str) -> None:
    if not path.is_symlink():
        path.symlink_to(target)


def _authentication(provider: Any) -> Authenticate:
    token = getattr(provider, "token", None)
    if token is None:
        return accept_everybody
    return bearer_authentication((TokenHash.of("tester", token),))
