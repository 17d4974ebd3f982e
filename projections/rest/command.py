"""The commands `serve` and `serve-token`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attrs import evolve, frozen
from cyclopts import App, Group, Parameter

from ledger.cli import families
from ledger.cli.exits import UsageError
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen
from ledger.ledger_handle import LedgerHandle
from ledger.locations import place_of
from ledger.log.request import now_millis
from ledger.model.errors import InvalidInputError
from ledger.table_handle import handle_of
from projections.rest.authentication import (
    BEARER,
    Authenticate,
    accept_everybody,
    add_token,
    authenticate_local_program,
    authentication_by_scheme,
    bearer_authentication,
    is_loopback,
    read_token_file,
)
from projections.rest.dlf_keys import read_key_file
from projections.rest.dlf_signatures import DEFAULT_TOLERANCE_S, dlf_authentication
from projections.rest.requests import MOST_BODY_BYTES
from projections.rest.server import (
    DEFAULT_GRACE_S,
    DEFAULT_PORT,
    Address,
    LogLevel,
    bound_socket,
    check_dependencies,
    check_port,
    configure_log,
    exit_with_running_requests,
    serve_until_stopped,
    uri_of,
)
from projections.rest.worker_pool import PoolLimits, WorkerPool

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from projections.rest.app import Serving
    from projections.rest.served_ledger import ServedLedger

_Flag = Parameter(negative="", show_default=False)
_MOST_THREADS = 1024
_MOST_GRACE_S = 86_400
_MOST_TOLERANCE_S = 86_400
PAIMON_MOUNT = "/paimon"
"""Path that the endpoints of Paimon's protocol begin with; Iceberg's are at the root."""

_ACCESS = Group("Address and access", sort_key=1)
_LOCATIONS = Group("Locations", sort_key=2)
_LIMITS = Group("Limits and log", sort_key=3)


def register_serve(app: App) -> None:
    """Add the command `serve`."""
    families.add(app, "serve", serve)


def register_serve_token(app: App) -> None:
    """Add the command `serve-token`."""
    families.add(app, "serve-token", serve_token)


@Parameter(name="*", group=_ACCESS)
@frozen
class AccessFlags:
    """Address of the server, and the principals that may use it."""

    host: Annotated[
        str,
        Parameter(
            help="Address to bind to. Other machines reach an address that is not of loopback, so "
            "it needs --token-file, --dlf-keys or --insecure."
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Parameter(help="Port to bind to; 0 for any free port.")] = DEFAULT_PORT
    token_file: Annotated[
        Path | None,
        Parameter(
            show_default=False,
            help="File of bearer tokens, from lakeledger serve-token; each request needs one, and "
            "its name is the author.",
        ),
    ] = None
    dlf_keys: Annotated[
        Path | None,
        Parameter(
            show_default=False,
            help="TOML file of access keys with secret and principal, readable by its owner only; "
            "Paimon's clients sign requests with them (token.provider = dlf).",
        ),
    ] = None
    dlf_tolerance: Annotated[
        int,
        Parameter(
            help="Seconds that the time of a signature may differ from the server's. Within it, a "
            "recorded request can be sent again."
        ),
    ] = DEFAULT_TOLERANCE_S
    insecure: Annotated[
        bool, _Flag, Parameter(help="Serve other machines without authentication.")
    ] = False
    author: Annotated[
        str | None,
        Parameter(
            env_var="LAKELEDGER_AUTHOR",
            help="Author of commits without authentication; user@host if omitted.",
        ),
    ] = None

    @property
    def accepts_browsers(self) -> bool:
        """True if a browser can authenticate: by a token, or because nothing is needed."""
        return self.token_file is not None or self.dlf_keys is None

    def authentication(self) -> Authenticate:
        """Return the authentication of the server.

        Raises:
            UsageError: Other machines could commit without a token, and nobody allowed that.
        """
        if not 1 <= self.dlf_tolerance <= _MOST_TOLERANCE_S:
            raise UsageError(
                f"--dlf-tolerance {self.dlf_tolerance} is out of range; give 1 to "
                f"{_MOST_TOLERANCE_S} seconds"
            )
        schemes: dict[str, Authenticate] = {}
        if self.token_file is not None:
            schemes[BEARER] = bearer_authentication(read_token_file(self.token_file))
        if self.dlf_keys is not None:
            keys = read_key_file(self.dlf_keys)
            schemes |= dlf_authentication(keys, now_millis, tolerance_s=self.dlf_tolerance)
        if schemes:
            if self.insecure:
                raise UsageError("--insecure cannot be combined with --token-file and --dlf-keys")
            return authentication_by_scheme(schemes)
        if self.insecure:
            return accept_everybody
        if not is_loopback(self.host):
            raise UsageError(
                f"--host {self.host} lets other machines commit without authentication; add "
                "--token-file FILE (create tokens with: lakeledger serve-token NAME --token-file "
                "FILE) or --dlf-keys FILE, or --insecure if everybody who reaches the address may "
                "write"
            )
        return authenticate_local_program


@Parameter(name="*", group=_LOCATIONS)
@frozen
class LocationFlags:
    """Locations that clients may name, and their configuration for locations."""

    allow_location: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="Folder or URL outside of the ledger where clients may place and register tables; "
            "repeatable.",
        ),
    ] = ()
    storage_config: Annotated[
        Path | None,
        Parameter(
            show_default=False,
            help="TOML file with clients' properties by location prefix, credentials included.",
        ),
    ] = None

    def storage(self) -> dict[str, dict[str, str]]:
        """Return clients' properties by location prefix.

        Raises:
            InvalidInputError: The file cannot be read, or is not a table of texts for each prefix;
                the message repeats no value.
        """
        path = self.storage_config
        if path is None:
            return {}
        try:
            document: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"the storage config {path} cannot be read: {error}") from error
        for prefix, properties in document.items():
            place_of(prefix)
            if not isinstance(properties, dict) or not all(
                isinstance(each, str) for each in properties.values()
            ):
                raise InvalidInputError(
                    f"the storage config {path} has no texts for {prefix!r}; write a table of "
                    '"property" = "value" below ["LOCATION PREFIX"]'
                )
        return document


@Parameter(name="*", group=_LIMITS)
@frozen
class LimitFlags:
    """Limits of the server, and its log."""

    threads: Annotated[
        int, Parameter(help="Number of requests that run at a time; one table gets 3/4 of them.")
    ] = 64
    max_body_bytes: Annotated[
        int, Parameter(help="Size of a request beyond which it is rejected.")
    ] = MOST_BODY_BYTES
    grace: Annotated[
        int, Parameter(help="Seconds that running requests get after SIGTERM or Ctrl-C.")
    ] = DEFAULT_GRACE_S
    log_level: Annotated[
        LogLevel, Parameter(help="Least level of the log lines on stderr, which are JSON.")
    ] = "info"


def serve(
    url: Annotated[str | None, Parameter(help="Root of the ledger; or use --ledger.")] = None,
    /,
    *,
    access: AccessFlags = AccessFlags(),
    locations: LocationFlags = LocationFlags(),
    limits: LimitFlags = LimitFlags(),
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Serve a ledger through the REST catalogs of Iceberg and of Paimon.

    Spark, Trino, Flink, DuckDB, PyIceberg and pypaimon then create tables and commit to them; each
    commit is in the log with its author, client and reason. Iceberg's clients take the first URL
    that is printed and no prefix, Paimon's the second one; any warehouse is right. A reason is the
    header X-Lakeledger-Message, or for Iceberg the property lakeledger.message.

    Tokens: create one for each principal with lakeledger serve-token, and give clients the option
    token; or give Paimon's clients access keys (--dlf-keys). Encrypt connections from other
    machines by a proxy with TLS.

    A browser shows the ledger at /, as lakeledger ui does; with --token-file it asks for a token as
    the password. GET /health answers while the process runs, GET /ready while the ledger can be
    read. Several
    servers on one ledger are safe. SIGTERM ends the server after the requests under way.

    Example:
        lakeledger serve lake --port 8181

        lakeledger serve s3://lake/ledger --host 0.0.0.0 --token-file tokens
    """
    check_dependencies()
    chosen = place.or_at(url)
    _check_numbers(access.port, limits)
    authenticate = access.authentication()
    handle = _opened(chosen, access.author, locations.allow_location)
    storage = locations.storage()
    if access.token_file is None and access.dlf_keys is None:
        chosen.screen.notice(
            f"warning: the author of each commit is {handle.setting.author}, for all clients: "
            "there is no access control without --token-file or --dlf-keys"
        )
    configure_log(limits.log_level)

    from projections.rest.app import Serving
    from projections.rest.page.routes import PageSite, page_routes
    from projections.rest.served_ledger import ServedLedger, StorageConfig

    pool = WorkerPool(PoolLimits.of_threads(limits.threads))
    serving = Serving(pool, authenticate=authenticate, most_body_bytes=limits.max_body_bytes)
    ledger = ServedLedger(handle, StorageConfig(storage))
    site = PageSite(ledger, authenticate)
    app = _application(ledger, serving, page_routes(site) if access.accepts_browsers else [])
    with bound_socket(Address(access.host, access.port)) as listening:
        uri = uri_of(access.host, listening.getsockname()[1])
        ended = serve_until_stopped(
            app,
            listening,
            [pool, site.pool],
            limits.grace,
            lambda: _announce(chosen.screen, handle.url, uri, has_page=access.accepts_browsers),
        )
    handle.close(limits.grace)
    if not ended:
        exit_with_running_requests(limits.grace)


def _application(ledger: ServedLedger, serving: Serving, pages: Sequence[BaseRoute]) -> Starlette:
    """Return the application that serves a ledger by both protocols, and its page."""
    from projections.rest.app import Protocol, create_app
    from projections.rest.iceberg.catalog import IcebergCatalog
    from projections.rest.iceberg.routes import iceberg_protocol
    from projections.rest.paimon.catalog import PaimonCatalog
    from projections.rest.paimon.routes import paimon_protocol

    mounts: Mapping[str, Protocol[Any]] = {
        "": iceberg_protocol(IcebergCatalog(ledger)),
        PAIMON_MOUNT: paimon_protocol(PaimonCatalog(ledger)),
    }
    return create_app(mounts, serving, pages)


def serve_token(
    name: Annotated[str, Parameter(help="Name of the principal: the author of its commits.")],
    /,
    *,
    token_file: Annotated[Path, Parameter(help="File to add the token's salted hash to.")],
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Create a bearer token for clients of a server, and print it once.

    The file gets a line with the name and a salted hash, from which the token cannot be computed.
    To revoke a token, delete its line. A running server reads the file when it is started again.

    Example:
        lakeledger serve-token ann --token-file tokens
    """
    token = add_token(token_file, name)
    document = {"principal": name, "token": token, "file": str(token_file)}
    place.screen.result(document, lambda to: to.line(token))


def _check_numbers(port: int, limits: LimitFlags) -> None:
    check_port(port)
    if not 1 <= limits.threads <= _MOST_THREADS:
        raise UsageError(f"--threads {limits.threads} is out of range; give 1 to {_MOST_THREADS}")
    if limits.max_body_bytes < 1 or not 1 <= limits.grace <= _MOST_GRACE_S:
        raise UsageError(
            f"--max-body-bytes is at least 1, and --grace is 1 to {_MOST_GRACE_S} seconds"
        )


def _opened(place: LedgerFlags, author: str | None, allowed: tuple[str, ...]) -> LedgerHandle:
    handle = handle_of(place.open())
    setting = handle.setting
    places = (*setting.allowed, *map(place_of, allowed))
    return LedgerHandle(evolve(setting, author=author or setting.author, allowed=places))


def _announce(screen: Screen, ledger: str, uri: str, *, has_page: bool) -> None:
    paimon = uri + PAIMON_MOUNT
    document = {"ledger": ledger, "uri": uri, "protocol": "iceberg", "paimonUri": paimon}
    document |= {"pageUri": f"{uri}/"} if has_page else {}

    def show(to: Screen) -> None:
        to.line(f"serving {ledger} to Iceberg clients at {uri}")
        to.line(f"and to Paimon clients at {paimon}")
        if has_page:
            to.line(f"and to browsers at {uri}/")

    screen.result(document, show)
    sys.stdout.flush()
