"""The server process: bind, serve until a signal, finish what is under way, stop."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from ledger.cli.exits import UNKNOWN, UsageError
from ledger.model.errors import InvalidInputError
from ledger.model.extras import missing_extra_error
from ledger.observing.telemetry import is_log_configured
from projections.rest.worker_pool import WorkerPool

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LogLevel = Literal["info", "warning"]
_LEVELS: Mapping[LogLevel, int] = {"info": 20, "warning": 30}
_MOST_PORT = 65_535
DEFAULT_PORT = 8181
DEFAULT_GRACE_S = 30
_BACKLOG = 2048
_LAST_WAIT_S = 1.0


@frozen
class Address:
    """An address to bind to; port 0 is any free port."""

    host: str
    port: int


def check_dependencies() -> None:
    """Check that the packages of the extra are installed.

    Raises:
        MissingDependencyError: One is not.
    """
    try:
        import jinja2  # noqa: F401 - looked for
        import starlette  # noqa: F401 - looked for
        import uvicorn  # noqa: F401 - looked for
    except ImportError as error:
        raise missing_extra_error(f"the server needs {error.name}", "serve") from error


def check_port(port: int) -> None:
    """Check the port of a command line.

    Raises:
        UsageError: It is no port.
    """
    if not 0 <= port <= _MOST_PORT:
        raise UsageError(f"--port {port} is no port; give 0 to {_MOST_PORT}")


@contextmanager
def bound_socket(address: Address) -> Iterator[socket.socket]:
    """Yield a listening socket at an address.

    Raises:
        InvalidInputError: The address cannot be bound.
    """
    try:
        family, *_, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.create_server(
            (str(where[0]), int(where[1])), family=family, backlog=_BACKLOG
        )
    except (OSError, OverflowError, UnicodeError) as error:
        raise InvalidInputError(
            f"{address.host} port {address.port} cannot be bound: {error}; choose another, such as "
            "--port 0 for any free port"
        ) from error
    with listening:
        # Its connections inherit this; asyncio sets it only on sockets that name their protocol.
        # Otherwise a body waits 40 ms for the acknowledgement of its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listening


def serve_until_stopped(
    app: ASGIApp,
    listening: socket.socket,
    pools: Sequence[WorkerPool],
    grace_s: float,
    announce: Callable[[], object],
) -> bool:
    """Serve until SIGTERM or SIGINT, and finish the requests under way.

    From the signal on no connection is accepted; a second signal ends the waiting.

    Args:
        app: The application.
        listening: The socket.
        pools: The pools that the application's handlers run in.
        grace_s: Seconds that requests under way get.
        announce: Called when connections are accepted.

    Returns:
        Whether every request ended in that time. The outcome of one that did not is unknown to its
        client, as after a lost connection.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=max(1, round(grace_s)),
    )
    server = uvicorn.Server(config)
    announce()
    # uvicorn raises the signals again when it has stopped, which would end this process at once.
    with _ignored_signals():
        server.run(sockets=[listening])
        # The grace is over, or no request is left.
        ended = [each.close(_LAST_WAIT_S) for each in pools]
        return all(ended)


@contextmanager
def _ignored_signals() -> Iterator[None]:
    caught = (signal.SIGTERM, signal.SIGINT)
    before = {each: signal.signal(each, lambda *_: None) for each in caught}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def uri_of(host: str, port: int) -> str:
    """Return the URI of a server.

    Example:
        >>> uri_of("127.0.0.1", 8181), uri_of("::1", 8181)
        ('http://127.0.0.1:8181', 'http://[::1]:8181')
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def configure_log(level: LogLevel) -> None:
    """Write log events to stderr, one JSON object a line, unless they are configured already."""
    if is_log_configured():
        return
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )


def exit_with_running_requests(grace: int) -> None:
    """End the process although requests still run, whose threads Python would wait for."""
    sys.stderr.write(
        f"lakeledger: requests were still running {grace} s after the signal; their clients got no "
        "answer, and find the outcome in the log\n"
    )
    sys.stderr.flush()
    os._exit(UNKNOWN)
