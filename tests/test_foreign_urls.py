"""URLs in foreign metadata: nothing runs, no host is called, nothing outside is read."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.registry import known_implementations
from pyarrow import parquet

import ledger
from ledger import FileChange, InvalidInputError, LedgerError, Schema, UnsupportedError
from ledger.cli import main
from ledger.locations import family_of
from ledger.stores.file_access import SCHEMES, FileAccess, open_location
from ledger.table_handle import handle_of
from tests.test_architecture import SOURCES, module_of

_WATCHED = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
_seen: list[tuple[str, str]] = []
_active: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _active and (event in _WATCHED or event == "open"):
        _seen.append((event, str(arguments[0]) if arguments else ""))


sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """Yield what the body asks of the system: files opened, hosts called, commands run."""
    _seen.clear()
    _active.append(True)
    try:
        yield _seen
    finally:
        _active.clear()


def hostile_urls(folder: Path) -> list[str]:
    """Return URLs of every scheme that fsspec knows, chained and not, and of local devices."""
    template = folder / "notes.json"
    command = "{{ cycler.__init__.__globals__.os.system('touch " + str(folder / "RAN") + "') }}"
    gen = [{"key": command, "url": "x", "dimensions": {"i": [1]}}]
    template.write_text(json.dumps({"version": 1, "templates": {}, "refs": {"a": "x"}, "gen": gen}))
    plain = [f"{scheme}://host/x.avro" for scheme in known_implementations if scheme != "memory"]
    chains = [f"{scheme}://a::file://{template}" for scheme in known_implementations]
    more = (
        f"reference://{template}",
        f"simplecache::http://127.0.0.1:9/{template.name}",
        "http://127.0.0.1:9/x.avro",
        "S3://127.0.0.1:9/x",
        "file://host/etc/hostname",
        "file:/etc/hostname",
        "FILE:///etc/hostname",
        "/etc/hostname",
        f"{folder}/t/../../../../../../etc/hostname",
        "nowhere://x",
        "::",
        "a\0b",
        "\udc80",
    )
    return [*plain, *chains, *more]


COLUMN = {"id": 1, "name": "id", "required": False, "type": "long"}


def iceberg(folder: Path, **changed: Any) -> str:
    """Write an Iceberg table whose metadata is changed, with one snapshot; return its folder."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    snapshot = {
        "snapshot-id": 5,
        "sequence-number": 1,
        "timestamp-ms": 1700000000000,
        "summary": {"operation": "append"},
        "manifest-list": f"{folder}/metadata/list.avro",
        "schema-id": 0,
        **changed.pop("snapshot", {}),
    }
    metadata = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1700000000000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [COLUMN]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": 5,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": 5, "type": "branch"}},
        **changed,
    }
    (folder / "metadata/v1.metadata.json").write_text(json.dumps(metadata))
    return str(folder)


def delta(folder: Path, *actions: dict[str, Any]) -> str:
    """Write a Delta table of one version; return its folder."""
    (folder / "_delta_log").mkdir(parents=True, exist_ok=True)
    schema = {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
    }
    begun = (
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "7d6c1f9e-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1700000000000,
            }
        },
    )
    lines = "".join(f"{json.dumps(each)}\n" for each in (*begun, *actions))
    (folder / f"_delta_log/{0:020d}.json").write_text(lines)
    return str(folder)


def added(path: str, **more: Any) -> dict[str, Any]:
    facts = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {"path": path, **facts, **more}}


def with_sidecar(folder: Path, url: str) -> str:
    """Write a Delta table that begins with a checkpoint whose sidecar lies at a URL."""
    table = delta(folder)
    (folder / f"_delta_log/{0:020d}.json").rename(folder / "begun.json")
    sidecar = {"sidecar": {"path": url, "sizeInBytes": 1, "modificationTime": 1}}
    name = f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    begun = (folder / "begun.json").read_text()
    (folder / "_delta_log" / name).write_text(begun + json.dumps(sidecar) + "\n")
    return table


def manifest_list(url: str) -> bytes:
    """Return a manifest list that names one manifest."""
    fields = [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "added_snapshot_id", "type": "long", "field-id": 503},
    ]
    import io

    import fastavro

    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    record = {
        "manifest_path": url,
        "manifest_length": 1,
        "partition_spec_id": 0,
        "added_snapshot_id": 5,
    }
    body = io.BytesIO()
    fastavro.writer(body, schema, [record])
    return body.getvalue()


def with_manifest(folder: Path, url: str) -> str:
    table = iceberg(folder)
    (folder / "metadata/list.avro").write_bytes(manifest_list(url))
    return table


def with_log(folder: Path, url: str) -> str:
    return iceberg(folder, **{"metadata-log": [{"timestamp-ms": 1, "metadata-file": url}]})


def of_version_1(folder: Path, url: str) -> str:
    return iceberg(folder, snapshot={"manifest-list": None, "manifests": [url]})


SOURCES_OF: dict[str, tuple[str, Callable[[Path, str], str]]] = {
    "manifest list": ("iceberg", lambda at, url: iceberg(at, snapshot={"manifest-list": url})),
    "manifest": ("iceberg", with_manifest),
    "manifests of version 1": ("iceberg", of_version_1),
    "metadata log": ("iceberg", with_log),
    "location": ("iceberg", lambda at, url: iceberg(at, location=url)),
    "added file without statistics": ("delta", lambda at, url: delta(at, added(url))),
    "sidecar": ("delta", with_sidecar),
    "source": ("iceberg", lambda _, url: url),
    "source of Delta": ("delta", lambda _, url: url),
    "source of Paimon": ("paimon", lambda _, url: url),
}
LOCAL_ONLY = ("/etc/", "file:", "FILE:")


def may_be_named(url: str) -> bool:
    """Return whether a user may name a URL, which is opened then: a host, or a local file."""
    family = family_of(url) if url.isprintable() else ""
    return "::" not in url and (family in SCHEMES or url.startswith("/"))


def outside(opened: list[tuple[str, str]], folder: Path) -> list[tuple[str, str]]:
    """Return what was asked for that no import of a table in a folder needs."""
    libraries = tuple({sys.prefix, sys.base_prefix, str(Path(ledger.__file__).parents[1]), "/usr"})
    cached = os.environ.get("PYTHONPYCACHEPREFIX", sys.prefix)
    return [
        (event, path)
        for event, path in opened
        if event != "open" or path.startswith("/etc/hostname") or "notes.json" in path
        if not path.startswith((*libraries, cached)) or event != "open"
        if str(folder / "lake") not in path
    ]


@pytest.mark.parametrize("field", SOURCES_OF)
def test_no_url_of_a_source_runs_code_calls_a_host_or_reads_outside(
    tmp_path: Path, field: str
) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    format_name, make = SOURCES_OF[field]
    for number, url in enumerate(hostile_urls(tmp_path)):
        if field.startswith("source") and may_be_named(url):
            continue
        try:
            source = make(tmp_path / f"{number}", url)
        except UnicodeEncodeError:
            continue
        with watched() as asked, suppress(LedgerError):
            lake.plan_import("d.t", source, format_name=format_name)
        assert not outside(asked, tmp_path), (field, url)
        assert not (tmp_path / "RAN").exists(), (field, url)


def _verify(table: ledger.Table, _: str) -> None:
    with suppress(SystemExit):
        main(
            [
                "verify",
                "d.t",
                "--data",
                "--ledger",
                handle_of(table).ledger_url.removeprefix("file://"),
            ]
        )


DOORS: dict[str, Callable[[ledger.Table, str], object]] = {
    "rows": lambda table, _: table.at().to_arrow(),
    "read_file": lambda table, url: handle_of(table).read_file(url),
    "verify": _verify,
    "add_files": lambda table, url: table.add_files([url]),
    "delete_files": lambda table, url: table.delete_files([url]),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_url_of_a_log_runs_code_or_calls_a_host(tmp_path: Path, door: str) -> None:
    for number, url in enumerate(hostile_urls(tmp_path)):
        if door == "add_files" and may_be_named(url):
            continue
        lake = ledger.open(tmp_path / f"lake{number}", author="t")
        lake.create_database("d")
        table = lake.create_table("d.t", Schema.of({"id": "BIGINT"}))
        with suppress(LedgerError, UnicodeEncodeError):
            table.append([FileChange(path=url, record_count=1, file_size_in_bytes=9)])
        with watched() as asked, suppress(LedgerError, UnicodeEncodeError):
            DOORS[door](table, url)
        assert not [each for each in asked if each[0] != "open" or "notes.json" in each[1]], url
        assert not (tmp_path / "RAN").exists(), url


def test_devices_pipes_and_links_out_of_a_source_are_not_read(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    (tmp_path / "secret.avro").write_bytes(manifest_list("s3://b/m.avro"))
    pipe, link, zero = (tmp_path / f"t/metadata/{each}.avro" for each in ("pipe", "link", "zero"))
    iceberg(tmp_path / "t")
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "secret.avro")
    zero.symlink_to("/dev/zero")
    for path in (pipe, link, zero, Path("/dev/zero"), Path("/dev/stdin"), tmp_path / "t/metadata"):
        source = iceberg(tmp_path / "t", snapshot={"manifest-list": str(path)})
        with pytest.raises(LedgerError, match="regular file|outside of the locations|folder"):
            lake.import_table("d.t", source)
    assert not lake.is_begun


def test_a_source_is_read_elsewhere_only_where_the_user_allows_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parquet.write_table(pa.table({"id": [1, 2]}), elsewhere / "a.parquet")
    source = delta(tmp_path / "t", added(str(elsewhere / "a.parquet")))
    with pytest.raises(UnsupportedError, match="allowed_locations"):
        ledger.open(tmp_path / "lake").import_table("d.t", source, format_name="delta")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(elsewhere)])
    lake.import_table("d.t", source, format_name="delta")
    (file,) = lake.table("d.t").at().files
    assert file.record_count == 2


def test_another_azure_account_is_another_service_and_gets_no_options() -> None:
    home = ("abfs", "mine.dfs.core.windows.net")
    access = FileAccess(home, {"account_name": "mine", "account_key": "k"}, frozenset({home}))
    assert access.permits("abfss://c@mine.blob.core.windows.net/a")
    assert access.permits("abfs://c/a")
    for url in ("abfss://c@theirs.dfs.core.windows.net/a", "abfss://c@mine.evil.example/a"):
        assert not access.permits(url)
        assert access.options_at(url) == {}


@pytest.mark.parametrize("scheme", [*known_implementations, "nowhere"])
def test_a_chain_is_opened_at_no_door(scheme: str) -> None:
    for url in (f"{scheme}::file:///etc/hostname", f"{scheme}://a::file:///etc/hostname"):
        with pytest.raises(InvalidInputError, match="chain of file systems"):
            open_location(url)


OPENING = {
    "ledger.cli.__init__": ({"open": 2}, "stdout and stderr of a process that has none"),
    "ledger.cli.changes": ({"read_bytes": 1}, "a file that the user names"),
    "ledger.cli.commands.imports": ({"open": 1}, "an export that the user names"),
    "ledger.cli.options": ({"read_text": 1}, "the user's own profile"),
    "ledger.cli.quickstart.steps": ({"read_table": 1}, "flights of a package"),
    "ledger.audit.report": ({"read_text": 1}, "the page's own template"),
    "ledger.model.extras": ({"read_text": 1}, "pip's record of this package"),
    "projections.rest.page.rendering": ({"read_bytes": 1}, "the page's own style and icon"),
    "projections.rest.authentication": ({"read_text": 1}, "the operator's own file of tokens"),
    "projections.rest.dlf_keys": ({"read_text": 1}, "the operator's own file of access keys"),
    "projections.rest.command": ({"read_text": 1}, "the operator's own storage config"),
    "ledger.cli.exits": ({"os.open": 1}, "the null device"),
    "ledger.stores.local": (
        {"os.open": 5, "open": 1},
        "keys of a store, safe as paths, and its lock",
    ),
    "ledger.stores.regular_files": ({"os.open": 1}, "the gate itself"),
    "ledger.rows.row_files": (
        {"os.open": 1, "OSFile": 1, "memory_map": 1},
        "folders that it made, for fsync, and its own temporary file",
    ),
    "ledger.stores.file_access": ({"url_to_fs": 1}, "the gate itself"),
}
"""Every call that opens a file by its path or URL, by module, with the reason why it may."""
_OPENERS = {"url_to_fs", "open_files", "get_fs_token_paths", "get_mapper", "read_bytes"}
_OPENERS |= {"read_text", "read_table", "urlopen", "from_uri", "memory_map", "OSFile", "open_local"}
_LIBRARIES = {"pd", "pl", "pandas", "polars", "pq", "parquet", "orc", "csv", "feather", "dataset"}


def _openings(path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rpartition(".")[2]
        if called in {"open", "os.open", "io.open", "fsspec.open"}:
            found[called] += 1
        elif last in _OPENERS or (
            called.partition(".")[0] in _LIBRARIES
            and last.startswith(("read_", "scan_", "dataset"))
            and last not in READERS
        ):
            found[last] += 1
        elif last == "open" and called.endswith(").open") and node.args:
            found["open"] += isinstance(node.args[0], ast.Constant)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_nothing_opens_a_path_around_the_gate(path: Path) -> None:
    module = module_of(path) + (".__init__" if path.stem == "__init__" else "")
    allowed, _ = OPENING.get(module, ({}, ""))
    assert _openings(path) == Counter(allowed), (
        "open files with FileAccess or open_location, or say here why this call needs neither"
    )


GATE = ("ledger.stores.file_access", "ledger.stores.regular_files")
BODIES = ("copy_to_arrow_memory", "pa.BufferReader", "io.BytesIO", "BytesIO", "body", "stream")
READERS = {"ParquetFile", "read_metadata", "block_reader", "reader"}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_arrow_and_avro_are_given_bytes_and_no_paths(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        owner, _, name = ast.unparse(node.func).rpartition(".")
        if name in READERS and owner in {"pq", "parquet", "fastavro", "orc"}:
            given = ast.unparse(node.args[0])
            assert given.partition("(")[0] in BODIES, f"{given}: read its bytes by FileAccess"


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_fsspec_is_used_by_the_gate_alone(path: Path) -> None:
    allowed = {"fsspec.utils": ("ledger.stores.objects",), "fsspec.core": ("ledger.stores",)}
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fsspec"):
            names = {each.name for each in node.names}
            is_gate = module_of(path) in {
                "ledger.stores.file_access",
                "ledger.stores.regular_files",
            }
            is_ours = any(
                module_of(path).startswith(each) for each in allowed.get(node.module or "", ())
            )
            assert is_gate or is_ours or names <= {"AbstractFileSystem", "tokenize"}, ast.unparse(
                node
            )
        elif isinstance(node, ast.Import):
            assert not any(each.name.startswith("fsspec") for each in node.names)


def test_up_segments_lead_out_of_no_permitted_folder(tmp_path: Path) -> None:
    # By way of a link, the system takes `..` for another folder than the text says.
    for folder in ("t", "outside/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside/secret").write_text("outside")
    (tmp_path / "t/link").symlink_to(tmp_path / "outside/deep")
    access = FileAccess(("file", ""), {}).below(str(tmp_path / "t"))
    with pytest.raises((OSError, LedgerError)):
        access.read(f"{tmp_path}/t/link/../secret")
    for url in (
        "https://h/t/../x",
        "https://h/t/%2e%2e/x",
        "sftp://h/t/a/../../x",
        "s3://b/t/../x",
    ):
        near = FileAccess(("file", ""), {}).below(url[: url.index("/t/") + 2])
        assert not near.permits(url)
        assert near.permits(url.replace("../", "").replace("%2e%2e/", ""))


@pytest.mark.parametrize("begin", ["file://", "FILE://", "file:", "file://localhost", ""])
def test_a_file_of_this_machine_is_opened_however_its_scheme_is_spelled(
    tmp_path: Path, begin: str
) -> None:
    (tmp_path / "a b%20#c?d=e@f").write_text("read")
    filesystem, path = open_location(f"{begin}{tmp_path}/a b%20#c?d=e@f")
    assert filesystem.cat_file(path) == b"read"
    access = FileAccess(("file", ""), {}).below(f"{begin}{tmp_path}")
    assert access.read(f"{begin}{tmp_path}/a b%20#c?d=e@f") == b"read"


@pytest.mark.parametrize("path", ["/dev/null", "x" * 300, "/x" * 3000, "FOLDER", "LOOP"])
def test_what_cannot_be_read_is_an_error_of_the_ledger(tmp_path: Path, path: str) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "BIGINT"}))
    (tmp_path / "LOOP").symlink_to(tmp_path / "LOOP")
    (tmp_path / "FOLDER").mkdir()
    named = str(tmp_path / path) if path.isupper() else path
    with suppress(LedgerError):
        assert handle_of(table).read_file(named) is None
    for format_name in ("iceberg", "delta", "paimon"):
        for source in (named, f"~nobody-of-that-name/{path}"):
            with pytest.raises(LedgerError):
                lake.import_table("d.u", source, format_name=format_name)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/x", "~nobody-of-that-name/x"])
def test_a_url_that_a_client_rejects_is_an_error_of_the_ledger(tmp_path: Path, url: str) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "BIGINT"}))
    with pytest.raises(LedgerError):
        table.add_files([url])


@pytest.mark.parametrize("spelling", ["{0}/../t", "{0}/", "file://{0}", "FILE:{0}", "{0}/./"])
def test_a_source_may_be_spelled_in_any_way(tmp_path: Path, spelling: str) -> None:
    source = delta(tmp_path / "t", added("a%20b.parquet", stats='{"numRecords": 1}'))
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.import_table("d.t", source, format_name="delta")
    again = lake.import_table("d.t", spelling.format(source), format_name="delta")
    assert again.transactions == 0
    new = lake.import_table("d.u", spelling.format(source), format_name="delta")
    assert new.source == source
