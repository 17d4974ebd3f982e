"""A Python worker of Spark's, between two tasks."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_archives() -> None:
    """Let this process forget how it imported from archives; what it imported stays.

    Before every task Spark has Python look anew at what there is to import. Up to Python 3.11 each
    importer of an archive then reads the archive's directory again, and a worker has one for each
    package of Spark's: a fifth of a second a task. They are a cache, and made anew when needed.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
