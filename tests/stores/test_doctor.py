from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledger import StoreError
from ledger.cli import exits, main
from ledger.cli.commands import ledgers
from ledger.stores import MemoryStore
from ledger.stores.factory import check_store
from tests.faults import DeliversTwice, LosesAnswers, Wrapped
from tests.stores.servers.buckets import S3Server, root


class ListsNothing(Wrapped):
    """Lists nothing any more."""

    def keys(self, prefix: str) -> Iterator[str]:
        raise OSError(f"no room for {prefix}")


def options_of(server: S3Server) -> list[str]:
    given = {
        "AWS_ACCESS_KEY_ID": server.key,
        "AWS_SECRET_ACCESS_KEY": server.secret,
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": "eu-west-1",
    }
    return [f"--storage-option={name}={value}" for name, value in given.items()]


def test_a_healthy_bucket_passes_every_check(
    seaweedfs: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = root(seaweedfs, "doctor")
    assert main(["doctor", url, "--output", "json", *options_of(seaweedfs)]) == exits.OK

    said = json.loads(capsys.readouterr().out)
    assert (said["url"], said["healthy"]) == (url, True)
    assert [each["check"] for each in said["checks"]] == [
        "creates a new key",
        "refuses to create it again",
        "keeps what was written first",
        "lists it at once",
        "replaces it",
        "forgets it once deleted",
    ]


def test_each_check_is_reported_with_the_time_that_it_took_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter(each / 100_000 for each in range(0, 1_000_000, 1234))
    monkeypatch.setattr(ledgers, "time", SimpleNamespace(perf_counter=lambda: next(moments)))

    found = ledgers._run_store_checks(MemoryStore("checked"))

    claims = [(each.claim, each.holds) for each in check_store(MemoryStore("again"), "checked")]
    assert [(each["check"], each["holds"]) for each in found] == claims
    assert {each["millis"] for each in found} == {12.3}


def test_a_store_that_fails_is_reported_with_the_count_of_passed_checks() -> None:
    with pytest.raises(StoreError, match=r"no room for _ledger \(3 checks passed before\)"):
        ledgers._run_store_checks(ListsNothing(MemoryStore("full")))


def test_a_bucket_that_would_lose_commits_is_explained(
    rclone: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", root(rclone, "doctor"), *options_of(rclone)]) == exits.STORE
    said = capsys.readouterr()
    assert said.out == ""
    assert "accepts a second write of a key" in said.err
    assert "Use Amazon S3" in said.err


def test_a_place_that_cannot_be_written_to_is_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"1")
    assert main(["doctor", str(tmp_path / "file" / "lake")]) == exits.STORE
    assert "Not a directory" in capsys.readouterr().err


def test_a_folder_passes_and_keeps_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(tmp_path)]) == exits.OK
    assert capsys.readouterr().out.count("yes, ") == 6
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_place_has_to_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKELEDGER_URL", raising=False)
    assert main(["doctor"]) == exits.USAGE
    assert "no ledger is given" in capsys.readouterr().err


def test_what_does_not_hold_is_found() -> None:
    """A store that reports a loss to the winner."""
    store = DeliversTwice(MemoryStore("doctor-twice"))
    assert [check.claim for check in check_store(store, "a/b") if not check.holds] == [
        "creates a new key"
    ]


def test_an_examination_that_breaks_off_leaves_nothing() -> None:
    inner = MemoryStore("doctor-lost")
    with pytest.raises(OSError, match="was lost"):
        list(check_store(LosesAnswers(inner), "a/b"))
    assert list(inner.keys("")) == []
