"""The log: the only code that appends commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.events.commit import Commit, Transaction
    from ledger.log.append import Appender
    from ledger.log.checkpoints import Checkpoints, Head
    from ledger.log.clock import millis_ahead
    from ledger.log.codec import Codec, digest, encode
    from ledger.log.commit_queue import PendingCommit
    from ledger.log.key_index import KeyFilter, KeyIndex
    from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
    from ledger.log.replay import Position
    from ledger.log.request import Appended, CommitOptions, Request, fresh_id, now_millis
    from ledger.log.segments import Segments, is_same_segment, read_segment, write_segment
    from ledger.log.stream_log import StreamLog
    from ledger.log.time_travel import at_version, head_state

__all__ = [
    "CHECKPOINT_INTERVAL",
    "Appended",
    "Appender",
    "Checkpoints",
    "Codec",
    "Commit",
    "CommitOptions",
    "Head",
    "KeyFilter",
    "KeyIndex",
    "Layout",
    "PendingCommit",
    "Position",
    "Request",
    "Segments",
    "StreamLog",
    "Transaction",
    "at_version",
    "digest",
    "encode",
    "fresh_id",
    "head_state",
    "is_same_segment",
    "millis_ahead",
    "now_millis",
    "read_segment",
    "write_segment",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.events.commit": ("Commit", "Transaction"),
            "ledger.log.append": ("Appender",),
            "ledger.log.checkpoints": ("Checkpoints", "Head"),
            "ledger.log.clock": ("millis_ahead",),
            "ledger.log.codec": ("Codec", "digest", "encode"),
            "ledger.log.commit_queue": ("PendingCommit",),
            "ledger.log.key_index": ("KeyFilter", "KeyIndex"),
            "ledger.log.layout": ("CHECKPOINT_INTERVAL", "Layout"),
            "ledger.log.replay": ("Position",),
            "ledger.log.request": (
                "Appended",
                "CommitOptions",
                "Request",
                "fresh_id",
                "now_millis",
            ),
            "ledger.log.segments": ("Segments", "is_same_segment", "read_segment", "write_segment"),
            "ledger.log.stream_log": ("StreamLog",),
            "ledger.log.time_travel": ("at_version", "head_state"),
        },
    )
