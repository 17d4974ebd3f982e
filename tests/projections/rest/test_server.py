"""The command `serve`: a process that binds safely, logs without secrets and stops cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import ledger
from ledger.model.errors import MissingDependencyError
from projections.rest.authentication import add_token
from projections.rest.server import Address, bound_socket, check_dependencies
from tests.programs import ROOT
from tests.projections.rest.application import SCHEMA

PROGRAM = """
import sys
from cyclopts import App
from ledger.cli.exits import run_and_report
from projections.commands import serve, serve_token
app = App(print_error=False, exit_on_error=False)
serve(app), serve_token(app)
line = sys.argv[1:]
command, bound, _ = app.parse_args(line)
sys.exit(run_and_report(lambda: command(*bound.args, **bound.kwargs), line))
"""
"""The commands as an installed package runs them; a checkout has no entry points."""

WITH_SLOW_COMMITS = """
import time
from ledger.stores.local import LocalStore
create = LocalStore.create
def slow(self, key, body):
    if "/log/" in key and "slow" in body.decode():
        print("commit begins", file=sys.stderr, flush=True)
        time.sleep(SECONDS)
    return create(self, key, body)
LocalStore.create = slow
"""


def start(*line: object, program: str = PROGRAM) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, line)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def outcome(*line: object) -> tuple[int, str, str]:
    process = start(*line)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@contextmanager
def serving(
    at: Path, *line: object, program: str = PROGRAM
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    ledger.open(str(at)).init()
    process = start("serve", at, "--port", 0, "--output", "jsonl", *line, program=program)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["uri"], process
    finally:
        process.kill()
        process.wait()


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_a_server_tells_its_address_serves_and_stops_cleanly(tmp_path: Path) -> None:
    with serving(tmp_path / "lake", "--author", "ann") as (uri, process):
        made = httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["shop"]})
        health = [httpx.get(f"{uri}/{each}").json()["status"] for each in ("health", "ready")]
        code, err = stop(process)

    lake = ledger.open(str(tmp_path / "lake"))
    assert uri.startswith("http://127.0.0.1:")
    assert made.status_code == 200
    assert health == ["up", "ready"]
    assert code == 0, err
    assert "the author of each commit is ann" in err
    assert [*lake.events()][-1].transactions[0].author == "ann"


def test_a_server_tells_the_addresses_of_both_protocols(tmp_path: Path) -> None:
    ledger.open(str(tmp_path / "lake")).init()
    process = start("serve", tmp_path / "lake", "--port", 0, "--output", "jsonl")
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        config = httpx.get(f"{said['paimonUri']}/v1/config").json()
    finally:
        stop(process)

    assert said["paimonUri"] == f"{said['uri']}/paimon"
    assert config["overrides"] == {"prefix": "lakeledger"}


def test_the_log_has_requests_and_no_secrets(tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", "ann")
    config = tmp_path / "storage.toml"
    config.write_text(f'["file://{tmp_path}"]\n"s3.secret-access-key" = "hush-hush"\n')
    with serving(
        tmp_path / "lake", "--token-file", tmp_path / "tokens", "--storage-config", config
    ) as (uri, process):
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=uri, headers=headers) as client:
            client.post("/v1/namespaces", json={"namespace": ["shop"]})
            made = client.post("/v1/namespaces/shop/tables", json={"name": "t", "schema": SCHEMA})
            client.get("/v1/namespaces/shop/tables/t?token=query-secret")
        httpx.get(f"{uri}/v1/config", headers={"authorization": "Bearer wrong-secret"})
        _, err = stop(process)

    logged = [json.loads(each) for each in err.splitlines() if each.startswith("{")]
    answered = [each for each in logged if each["event"] == "request_answered"]
    assert made.json()["config"] == {"s3.secret-access-key": "hush-hush"}
    assert [(each["method"], each["path"], each["status"]) for each in answered] == [
        ("POST", "/v1/namespaces", 200),
        ("POST", "/v1/namespaces/shop/tables", 200),
        ("GET", "/v1/namespaces/shop/tables/t", 200),
        ("GET", "/v1/config", 401),
    ]
    for secret in (token, "hush-hush", "query-secret", "wrong-secret"):
        assert secret not in err
    assert "the author of each commit" not in err


def test_a_signal_lets_the_requests_under_way_finish(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        "line = sys", WITH_SLOW_COMMITS.replace("SECONDS", "2") + "line = sys", 1
    )
    with serving(tmp_path / "lake", program=program) as (uri, process):
        answers: list[httpx.Response] = []
        body = {"namespace": ["slow"]}
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{uri}/v1/namespaces", json=body, timeout=30))
        )
        asking.start()
        wait_for_line(process, "commit begins")
        code, err = stop(process)
        asking.join()

    assert code == 0, err
    assert answers[0].status_code == 200
    assert ledger.open(str(tmp_path / "lake")).databases() == ["slow"]


def test_a_request_that_outlasts_the_grace_does_not_hold_the_process(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        "line = sys", WITH_SLOW_COMMITS.replace("SECONDS", "300") + "line = sys", 1
    )
    with serving(tmp_path / "lake", "--grace", 1, program=program) as (uri, process):
        failures: list[Exception] = []

        def ask() -> None:
            try:
                httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["slow"]}, timeout=60)
            except httpx.HTTPError as error:
                failures.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_for_line(process, "commit begins")
        begun_s = time.monotonic()
        code, err = stop(process)
        asking.join()

    assert time.monotonic() - begun_s < 20
    assert code == 5
    assert "requests were still running" in err
    assert ledger.open(str(tmp_path / "lake")).databases() == []


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    while text not in (line := process.stderr.readline()):
        assert line, f"the server ended before {text!r}"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("--host", "0.0.0.0"), 2, "--token-file FILE"),  # noqa: S104 - rejected
        (("--host", "::"), 2, "--token-file FILE"),
        (("--insecure", "--token-file", "{at}/tokens"), 2, "cannot be combined"),
        (("--token-file", "{at}/nowhere"), 1, "cannot be read"),
        (("--port", "65536"), 2, "--port 65536"),
        (("--port", "-1"), 2, "--port -1"),
        (("--threads", "0"), 2, "--threads 0"),
        (("--grace", "0"), 2, "--grace"),
        (("--host", "127.0.0.1", "--port", "{taken}"), 1, "choose another"),
        (("--storage-config", "{at}/nowhere"), 1, "storage config"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    tmp_path: Path, line: tuple[str, ...], code: int, said: str
) -> None:
    import socket

    ledger.open(str(tmp_path / "lake")).init()
    add_token(tmp_path / "tokens", "ann")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = [each.format(at=tmp_path, taken=taken.getsockname()[1]) for each in line]
        found, _, err = outcome("serve", tmp_path / "lake", *words)

    assert found == code, err
    assert said in err


def test_a_mistyped_ledger_is_not_created(tmp_path: Path) -> None:
    code, _, err = outcome("serve", tmp_path / "nowhere", "--port", 0)

    assert (code, "there is no ledger" in err) == (3, True)
    assert not (tmp_path / "nowhere").exists()


def test_a_token_is_printed_once(tmp_path: Path) -> None:
    code, out, err = outcome("serve-token", "ann", "--token-file", tmp_path / "tokens")

    assert code == 0, err
    assert (tmp_path / "tokens").read_text().startswith("ann ")
    assert out.strip() not in (tmp_path / "tokens").read_text()


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    with pytest.raises(MissingDependencyError, match=r"uvicorn: pip install .*\[serve\]"):
        check_dependencies()


def test_a_connection_sends_a_body_without_waiting_for_an_acknowledgement() -> None:
    with (
        bound_socket(Address("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()),
    ):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
