"""Refusals of a disk raise typed errors at once; only silence is silence."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import SetOption, StoreError
from ledger.log.request import RetryPolicy
from ledger.stores import LocalStore
from ledger.stores import local as posix
from tests.lakes import lake_on, orders

_SILENCE = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENETDOWN, errno.EREMOTEIO, None)
_REFUSED = {
    errno.ENOSPC: "NO_SPACE",
    errno.EDQUOT: "NO_SPACE",
    errno.EROFS: "READ_ONLY",
    errno.EACCES: "NO_PERMISSION",
}
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class Disk(LocalStore):
    """A disk that answers one step with an error."""

    def __init__(self, root: Path, step: str, code: int | None) -> None:
        super().__init__(root)
        self._step = step
        self._error = OSError("odd") if code is None else OSError(code, os.strerror(code))
        self._is_linked = False

    def _sync(self, descriptor: int) -> None:
        if self._step == ("after the link" if self._is_linked else "before the link"):
            raise self._error
        super()._sync(descriptor)

    def _link(self, folder: int, draft: str, name: str) -> None:
        if self._step == "at the link":
            raise self._error
        super()._link(folder, draft, name)
        self._is_linked = True
        if self._step == "linked all the same":
            raise self._error


def never() -> RetryPolicy:
    """Fails on any sleep."""

    def wait(seconds: float) -> None:
        raise AssertionError(f"waited {seconds} s for what was refused")

    return RetryPolicy(sleep=wait)


@pytest.mark.parametrize("code", [*_REFUSED, *_NO_LINKS, *_SILENCE])
def test_before_the_link_every_error_is_a_refusal(tmp_path: Path, code: int | None) -> None:
    with pytest.raises(StoreError, match=r"cannot create 'log/0': .*Nothing was written; "):
        Disk(tmp_path, "before the link", code).create("log/0", b"1")

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("code", [*_REFUSED, *_NO_LINKS])
def test_a_refused_link_is_a_refusal_with_its_reason(tmp_path: Path, code: int) -> None:
    with pytest.raises(StoreError, match=os.strerror(code)) as refused:
        Disk(tmp_path, "at the link", code).create("log/0", b"1")

    assert refused.value.kind == _REFUSED.get(code, "NO_HARD_LINKS")
    assert errno.errorcode[code] in str(refused.value)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("code", [*_SILENCE, errno.ENOENT])
def test_silence_at_the_link_is_no_refusal(tmp_path: Path, code: int | None) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - whatever it says
        Disk(tmp_path, "at the link", code).create("log/0", b"1")


@pytest.mark.parametrize("code", [*_REFUSED, *_NO_LINKS, *_SILENCE])
def test_what_fails_once_the_name_is_there_is_no_refusal(tmp_path: Path, code: int | None) -> None:
    for step in ("after the link", "linked all the same"):
        with pytest.raises(OSError):  # noqa: PT011 - whatever it says
            Disk(tmp_path / step, step, code).create("log/0", b"1")
        assert LocalStore(tmp_path / step).read("log/0") == b"1"


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for write in (store.create, store.replace):
        with pytest.raises(StoreError, match="ENAMETOOLONG") as refused:
            write("log/" + "x" * 300, b"1")
        assert refused.value.kind == "NAME_TOO_LONG"


def test_a_file_in_the_way_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_bytes(b"mine")
    store = LocalStore(tmp_path)
    for write in (store.create, store.replace):
        with pytest.raises(StoreError, match="Not a directory|File exists") as refused:
            write("shop.db/orders/0", b"1")
        assert refused.value.kind == "NO_FOLDER"
    with pytest.raises(StoreError, match="cannot lock"), store.lock("shop.db/orders/lock"):
        pass
    assert (tmp_path / "shop.db").read_bytes() == b"mine"


def test_a_folder_in_the_way_of_a_replaced_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hint").mkdir()
    with pytest.raises(StoreError, match="cannot replace 'hint': Is a directory"):
        LocalStore(tmp_path).replace("hint", b"1")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may come to."""
    folder = Path(tempfile.mkdtemp(prefix="refusals-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Run as a user that owns nothing here; root may write everywhere."""
    if os.geteuid():
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_caller_without_write_access_gets_an_error_and_may_read(shared: Path) -> None:
    table = orders(lake_on(LocalStore(shared / "lake")))
    table.alter([SetOption("k", "v")], commit_id="mine")
    folders = [shared / "lake", *(each for each in (shared / "lake").rglob("*") if each.is_dir())]
    for each in folders:
        each.chmod(0o555)
    with as_somebody_else():
        lake = lake_on(LocalStore(shared / "lake"), retry_policy=never())
        read = lake.table("shop.orders")
        assert read.at().options["k"] == "v"
        # Found by its id, and durable all the same.
        assert read.alter([SetOption("k", "v")], commit_id="mine").version == 1
        store = LocalStore(shared / "lake")
        assert store.confirm("_ledger/ledger.json") == store.read("_ledger/ledger.json")
        for ask in (
            lambda: read.alter([SetOption("k", "w")]),
            lambda: lake.create_database("other"),
            lambda: lake_on(LocalStore(shared / "new"), retry_policy=never()).init(),
        ):
            with pytest.raises(StoreError, match="Permission denied") as refused:
                ask()
            assert refused.value.kind == "NO_PERMISSION"
    for each in folders:
        each.chmod(0o755)


def test_a_file_that_is_too_large_is_refused_and_the_next_commit_goes_through(
    tmp_path: Path,
) -> None:
    table = orders(lake_on(LocalStore(tmp_path), retry_policy=never()))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    try:
        with pytest.raises(StoreError, match="File too large") as refused:
            table.alter([SetOption("k", "x" * 5_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.kind == "TOO_LARGE"
    assert table.alter([SetOption("k", "v")]).version == 1


_ON_A_SMALL_DISK = """
import os, subprocess, sys
import ledger
from ledger.model.errors import StoreError
from ledger.stores import LocalStore; from ledger.stores import local as posix
from ledger.log.request import RetryPolicy

def remount(how):
    subprocess.run(["mount", "-o", f"remount,{how}", "tmpfs", sys.argv[1]], check=True)

def refused(ask, kind):
    try:
        ask()
    except StoreError as error:
        assert error.kind == kind, error
    else:
        raise AssertionError("accepted")

root = sys.argv[1] + "/lake"
lake = ledger.open(root, author="me")
lake.create_database("shop")
table = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
table.alter([ledger.SetOption("k", "v")], commit_id="mine")

filler = open(sys.argv[1] + "/filler", "wb", buffering=0)
try:
    while True:
        filler.write(bytes(4096))
except OSError:
    pass
refused(lambda: table.alter([ledger.SetOption("k", "x" * 9000)]), "NO_SPACE")
os.unlink(sys.argv[1] + "/filler")
filler.close()

remount("ro")
again = ledger.open(root, author="me")
read = again.table("shop.orders")
assert read.at().options["k"] == "v"
assert read.alter([ledger.SetOption("k", "v")], commit_id="mine").version == 1
refused(lambda: read.alter([ledger.SetOption("k", "w")]), "READ_ONLY")
refused(lambda: again.create_database("more"), "READ_ONLY")
refused(lambda: LocalStore(root).create("a", b"1"), "READ_ONLY")
refused(lambda: LocalStore(root).replace("a", b"1"), "READ_ONLY")
remount("rw")
assert read.alter([ledger.SetOption("k", "w")]).version == 2
"""


def test_a_full_and_a_read_only_disk_are_reported_and_can_be_read(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount --make-rprivate / && mount -t tmpfs -o size=1M tmpfs {disk}"
    alone = ["unshare", "--mount", "sh", "-c"]
    if subprocess.run([*alone, mount], capture_output=True, check=False).returncode:
        pytest.skip("no disk of its own may be mounted here")
    script = tmp_path / "script.py"
    script.write_text(_ON_A_SMALL_DISK)
    line = f'{mount} && exec "$0" {script} {disk}'
    done = subprocess.run(
        [*alone, line, sys.executable], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr


def test_init_at_a_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")

    with pytest.raises(StoreError, match="Not a directory.*move it away"):
        lake_on(LocalStore(tmp_path / "file"), retry_policy=never()).init()


@pytest.mark.parametrize("missing", ["fcntl", "O_DIRECTORY", "link"])
def test_a_system_that_is_not_posix_imports_the_ledger_and_refuses_folders(missing: str) -> None:
    script = f"""
    import os, sys
    if {missing!r} == "fcntl":
        sys.modules["fcntl"] = None
    elif {missing!r} == "O_DIRECTORY":
        del os.O_DIRECTORY
    else:
        os.supports_dir_fd = set()
    import ledger
    lake = ledger.open("memory://windows")
    lake.create_database("shop")
    try:
        ledger.open("lake")
    except ledger.StoreError as error:
        assert "POSIX" in str(error) and error.kind == "SYSTEM", error
    else:
        raise AssertionError("a local root was accepted")
    """
    line = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_full_sync_goes_before_the_ordinary_one_where_the_system_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS has it; some file systems there know the ordinary one only."""
    asked: list[str] = []

    class Fcntl:
        code: int | None = None

        def fcntl(self, _descriptor: int, command: int) -> None:
            asked.append(f"fcntl {command}")
            if self.code is not None:
                raise OSError(self.code, "no")

    system = Fcntl()
    monkeypatch.setattr(posix, "_FULL_SYNC", 51)
    monkeypatch.setattr(posix, "fcntl", system)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: asked.append("fsync"))
    with (tmp_path / "file").open("wb") as file:
        posix.sync(file.fileno())
        assert asked == ["fcntl 51"]
        system.code = errno.ENOTSUP
        posix.sync(file.fileno())
        assert asked == ["fcntl 51", "fcntl 51", "fsync"]
        system.code = errno.EIO
        with pytest.raises(OSError, match="no"):
            posix.sync(file.fileno())
