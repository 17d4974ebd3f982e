from __future__ import annotations

import gc
import sys
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from projections.source import span_reading
from projections.source.span_reading import begin_task


def test_an_archive_can_be_imported_from_after_it_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "some.zip"
    with ZipFile(archive, "w") as written:
        written.writestr("first_in_an_archive.py", "")
        written.writestr("second_in_an_archive.py", "value = 2")
    monkeypatch.syspath_prepend(str(archive))
    __import__("first_in_an_archive")
    assert isinstance(sys.path_importer_cache[str(archive)], zipimporter)

    gc.unfreeze()
    # Another test of this process may have begun a task.
    span_reading._freeze_loaded_objects.cache_clear()
    begin_task()
    loaded = gc.get_freeze_count()
    begin_task()

    # What tasks leave behind is collected as ever.
    assert loaded >= gc.get_freeze_count() > 0
    assert not any(isinstance(each, zipimporter) for each in sys.path_importer_cache.values())
    assert __import__("second_in_an_archive").value == 2
