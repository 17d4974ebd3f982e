from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest

from ledger import SetOption, StoreError
from ledger.stores import Durability, LocalStore, Store
from tests.lakes import lake_on, no_time, orders
from tests.store_contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "root")

    def raw_read(self, store: Store, key: str) -> bytes | None:
        path = Path(store.url.removeprefix("file://"), key)
        return path.read_bytes() if path.is_file() else None

    def raw_write(self, store: Store, key: str, body: bytes) -> None:
        path = Path(store.url.removeprefix("file://"), key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def reopen(self, store: Store) -> LocalStore:
        return LocalStore(store.url.removeprefix("file://"))


class TestLocalStoreWithoutSyncs(TestLocalStore):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "root", durable=Durability.NONE)


class SyncRecorder(LocalStore):
    """Writes down what each sync made durable, with what was visible at that moment."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.syncs: list[tuple[str, list[str]]] = []

    def _sync(self, descriptor: int) -> None:
        super()._sync(descriptor)
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        self.syncs.append((self._spelled(target), list(self.keys(""))))

    def _spelled(self, path: Path) -> str:
        if path.name.startswith(".tmp-"):
            return f"draft of {path.stat().st_size} bytes"
        return os.path.relpath(path, self._root)


class Retransmits(LocalStore):
    """A link whose answer the network lost, sent again by the NFS client."""

    def _link(self, folder: int, draft: str, name: str) -> None:
        super()._link(folder, draft, name)
        super()._link(folder, draft, name)


class BreaksAtTheFolder(LocalStore):
    """A disk that fails when a folder is synced."""

    def _sync(self, descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir() and self.exists("log/0"):
            raise OSError("the disk is gone")
        super()._sync(descriptor)


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files")


@needs_proc
def test_a_create_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    """Content before the name, the name before the answer, and all folders above, once."""
    store = SyncRecorder(tmp_path / "root")
    store.create("t/log/0", b"four")
    assert store.syncs == [
        ("..", []),
        (".", []),
        ("t", []),
        ("draft of 4 bytes", []),
        ("t/log", ["t/log/0"]),
    ]

    store.syncs.clear()
    store.create("t/log/1", b"four!")
    assert store.syncs == [
        ("draft of 5 bytes", ["t/log/0"]),
        ("t/log", ["t/log/0", "t/log/1"]),
    ]


@needs_proc
def test_a_durable_replacement_is_synced_before_and_after_it_shows(tmp_path: Path) -> None:
    shown: list[bytes | None] = []

    class Reading(SyncRecorder):
        def _sync(self, descriptor: int) -> None:
            shown.append(self.read("t/a"))
            super()._sync(descriptor)

    store = Reading(tmp_path / "store")
    store.create("t/a", b"1")
    store.syncs.clear()
    shown.clear()

    store.replace_durably("t/a", b"22")
    assert [name for name, _ in store.syncs] == ["draft of 2 bytes", "t"]
    assert shown == [b"1", b"22"]


@needs_proc
def test_folders_that_somebody_else_made_are_synced_once_too(tmp_path: Path) -> None:
    (tmp_path / "t/log").mkdir(parents=True)
    store = SyncRecorder(tmp_path)
    store.create("t/log/0", b"1")

    assert [name for name, _ in store.syncs] == ["..", ".", "t", "draft of 1 bytes", "t/log"]


@needs_proc
def test_losers_sync_nothing(tmp_path: Path) -> None:
    LocalStore(tmp_path).create("t/0", b"1")
    store = SyncRecorder(tmp_path)

    assert store.create("t/0", b"2") is False
    store.replace("t/hint", b"1")
    assert store.syncs == []


@needs_proc
def test_confirming_syncs_the_names_down_to_the_key(tmp_path: Path) -> None:
    LocalStore(tmp_path, durable=Durability.NONE).create("t/log/0", b"1")
    store = SyncRecorder(tmp_path)

    assert store.confirm("t/log/0") == b"1"
    assert [name for name, _ in store.syncs] == ["..", ".", "t", "t/log"]


def test_only_the_durable_store_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError("synced")

    monkeypatch.setattr(os, "fsync", refuse)
    hasty = LocalStore(tmp_path, durable=Durability.NONE)

    assert hasty.create("t/0", b"1") is True
    assert hasty.confirm("t/0") == b"1"
    for write in (LocalStore(tmp_path).create, LocalStore(tmp_path / "new").create):
        with pytest.raises(StoreError, match="synced"):
            write("t/1", b"1")


@needs_proc
def test_a_sync_that_fails_after_the_link_is_an_unknown_outcome(tmp_path: Path) -> None:
    store = BreaksAtTheFolder(tmp_path)
    with pytest.raises(OSError, match="disk is gone"):
        store.create("log/0", b"1")

    assert store.read("log/0") == b"1"
    with pytest.raises(OSError, match="disk is gone"):
        store.confirm("log/0")
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["0"]


def test_a_retransmitted_link_is_still_a_win(tmp_path: Path) -> None:
    store = Retransmits(tmp_path)

    assert store.create("a", b"1") is True
    assert store.create("a", b"2") is False
    assert store.read("a") == b"1"


def test_losing_at_the_link_is_a_loss(tmp_path: Path) -> None:
    """The winner comes between the look and the link."""

    class Slow(LocalStore):
        def _link(self, folder: int, draft: str, name: str) -> None:
            LocalStore(tmp_path).create("a", b"theirs")
            super()._link(folder, draft, name)

    assert Slow(tmp_path).create("a", b"mine") is False
    assert LocalStore(tmp_path).read("a") == b"theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_large_file_is_read_in_a_handful_of_calls(tmp_path: Path) -> None:
    """However large it is: time and memory go by its size, not by the square of it."""
    body = os.urandom(16 << 20)
    (tmp_path / "large").write_bytes(body)
    store, calls = LocalStore(tmp_path), []

    def count(_frame: object, event: str, _called: object) -> None:
        if event == "c_call":
            calls.append(event)

    sys.setprofile(count)
    try:
        found = store.read("large")
    finally:
        sys.setprofile(None)
    assert found == body
    assert len(calls) < 30


def test_nothing_but_the_bodies_is_left_behind(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.create("a", b"1")
    store.create("a", b"2")
    store.replace("b", b"1")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_full_disk_leaves_no_draft(tmp_path: Path) -> None:
    class Full(LocalStore):
        def _sync(self, descriptor: int) -> None:
            super()._sync(descriptor)
            raise OSError(28, "No space left on device")

    (tmp_path / "log").mkdir()
    with pytest.raises(StoreError, match="No space") as refused:
        Full(tmp_path).create("log/0", b"1")
    assert refused.value.kind == "NO_SPACE"
    assert list((tmp_path / "log").iterdir()) == []


@needs_proc
def test_many_files_are_synced_before_any_shows_and_their_folders_once_after(
    tmp_path: Path,
) -> None:
    store = SyncRecorder(tmp_path)
    store.create_many([{"t/a": b"1", "t/b": b"22"}, {"t/c": b"333"}], lambda *_: None)
    store.syncs.clear()
    store.create_many([{"t/d": b"1", "u/e": b"22"}, {"t/f": b"333"}], lambda *_: None)

    new = {"t/d", "t/f", "u/e"}
    drafts = [seen for name, seen in store.syncs if name.startswith("draft")]
    assert len(drafts) == 3
    assert not [seen for seen in drafts if new & set(seen)]
    # The folder `u` was made, so that its name is synced into its parent before.
    after = [(name, new & set(seen)) for name, seen in store.syncs if name in {"t", "u"}]
    assert sorted(after) == [("t", new), ("u", new)]


def test_many_files_on_a_full_disk_show_none_and_leave_no_draft(tmp_path: Path) -> None:
    class Fills(LocalStore):
        synced = 0

        def _sync(self, descriptor: int) -> None:
            super()._sync(descriptor)
            self.synced += 1
            if self.synced > 20:
                raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space") as refused:
        Fills(tmp_path).create_many([{f"log/{n}": b"1" for n in range(40)}], lambda *_: None)
    assert refused.value.kind == "NO_SPACE"
    assert list((tmp_path / "log").iterdir()) == []


def test_a_folder_in_the_keys_place_is_an_error_not_a_winner(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    with pytest.raises(StoreError, match="cannot create 'a': a folder, .* move it away"):
        LocalStore(tmp_path).create("a", b"1")


def test_a_link_that_leads_nowhere_in_the_keys_place_is_an_error_at_once(tmp_path: Path) -> None:
    table = orders(lake_on(LocalStore(tmp_path), retry_policy=no_time()))
    link = tmp_path / "shop.db/orders/_ledger/log" / f"{1:020d}.json"
    link.symlink_to("nowhere")

    with pytest.raises(StoreError, match=f"cannot create '{link.name}'.*Nothing was written"):
        table.alter([SetOption("k", "v")])
    assert not (link.parent / "nowhere").exists()
    link.unlink()
    assert table.alter([SetOption("k", "v")]).version == 1


def test_a_root_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"1")

    for write in ("create", "replace"):
        with pytest.raises(StoreError, match="Nothing was written.*move it away") as refused:
            getattr(LocalStore(tmp_path / "root"), write)("a", b"1")
        assert refused.value.kind == "NO_FOLDER"
    assert (tmp_path / "root").read_bytes() == b"1"


def test_a_root_that_was_removed_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "root")
    store.create("t/a", b"1")
    (tmp_path / "root/t/a").unlink()
    (tmp_path / "root/t").rmdir()
    (tmp_path / "root").rmdir()

    assert store.create("t/a", b"2") is True


def test_a_forked_child_has_names_of_its_own_for_what_it_writes(tmp_path: Path) -> None:
    """Parent and child continue from the same memory; one's draft is not the other's."""

    class Names(LocalStore):
        def _link(self, folder: int, draft: str, name: str) -> None:
            super()._link(folder, draft, name)
            (tmp_path / f"draft of {name}").write_text(draft)

    store = Names(tmp_path / "root")
    store.create("a", b"1")
    child = os.fork()
    if not child:
        try:
            store.create("c", b"1")
        finally:
            # Whatever happened, the tests are its parent's.
            os._exit(0)
    os.waitpid(child, 0)
    store.create("b", b"1")

    drafts = [(tmp_path / f"draft of {name}").read_text() for name in "abc"]
    assert len({*drafts}) == 3


def test_foreign_files_are_no_keys(tmp_path: Path) -> None:
    for name in (".tmp-orphan", ".lock", "back\\slash", "line\nbreak", "key"):
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "round").symlink_to(tmp_path)

    assert list(LocalStore(tmp_path).keys("")) == ["key"]


def test_a_copy_through_pickle_is_the_same_store(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=Durability.NONE)
    store.create("a", b"1")

    assert pickle.loads(pickle.dumps(store)).read("a") == b"1"  # noqa: S301 - our own bytes


@needs_proc
def test_no_call_leaks_a_descriptor(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)

    def use(number: int) -> None:
        store.create(f"log/{number}", b"1")
        store.create(f"log/{number}", b"2")
        store.replace("hint", b"1")
        next(store.read_many([f"log/{number}", "hint"]))
        assert [store.read("log"), store.confirm("none")] == [None, None]
        with store.lock("log"):
            list(store.keys(""))

    use(0)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(1, 20):
        use(number)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
