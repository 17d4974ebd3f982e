"""Simulation of a distant server: a local relay that delays every byte."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

_HOST = "127.0.0.1"
_CHUNK = 1 << 16


@contextmanager
def further_away(endpoint: str, round_trip_ms: float) -> Iterator[str]:
    """Yield an endpoint that relays to another one with a round trip of some milliseconds.

    Half of the delay is on the way there and half on the way back; delayed bytes do not block one
    another. The relay is a separate process, so that it uses no time of this one.
    """
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    relay = context.Process(
        target=_relay, args=(urlsplit(endpoint).netloc, round_trip_ms / 2000, theirs), daemon=True
    )
    relay.start()
    try:
        yield f"http://{_HOST}:{mine.recv()}"
    finally:
        relay.terminate()
        relay.join()


@contextmanager
def at_distance(options: Mapping[str, Any], round_trip_ms: float) -> Iterator[Mapping[str, Any]]:
    """Yield a store's options with a delayed endpoint; unchanged if the delay is 0."""
    if not round_trip_ms:
        yield options
        return
    with further_away(options["endpoint_url"], round_trip_ms) as endpoint:
        yield {**options, "endpoint_url": endpoint}


def _relay(target: str, delay_s: float, told: Connection) -> None:
    asyncio.run(_serve(target, delay_s, told))


async def _serve(target: str, delay_s: float, told: Connection) -> None:
    server = await asyncio.start_server(partial(_connected, target, delay_s), _HOST, 0)
    told.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _connected(
    target: str, delay_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    host, _, port = target.partition(":")
    there, back = await asyncio.open_connection(host, int(port))
    await asyncio.gather(
        _hand_on(reader, back, delay_s), _hand_on(there, writer, delay_s), return_exceptions=True
    )


async def _hand_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    clock = asyncio.get_running_loop().time
    on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def arrive() -> None:
        while True:
            due, data = await on_the_way.get()
            await asyncio.sleep(max(0.0, due - clock()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    arriving = asyncio.create_task(arrive())
    data = b"-"
    while data:
        data = await reader.read(_CHUNK)
        on_the_way.put_nowait((clock() + delay_s, data))
    await arriving
