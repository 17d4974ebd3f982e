from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from projections.spark_tasks import clear_archive_importers


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

    clear_archive_importers()

    assert not any(isinstance(each, zipimporter) for each in sys.path_importer_cache.values())
    assert __import__("second_in_an_archive").value == 2
