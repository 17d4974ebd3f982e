"""State of a Spark Python worker between tasks."""

from __future__ import annotations

import gc
import sys
from functools import cache
from zipimport import zipimporter


def begin_task() -> None:
    """Spare this process what Spark or Python would do again at every task."""
    forget_archives()
    _pass_over_what_is_loaded()


def forget_archives() -> None:
    """Let this process forget how it imported from archives; what it imported stays.

    Before every task Spark has Python look anew at what there is to import. Up to Python 3.11 each
    importer of an archive then reads the archive's directory again, and a worker has one for each
    package of Spark's: a fifth of a second a task. They are a cache, and made anew when needed.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]


@cache
def _pass_over_what_is_loaded() -> None:
    """Let the collector look no more at what is there before the first task.

    Spark's libraries are some hundred thousand objects that stay. Looking at them for garbage time
    and again takes an eighth of the time in which a worker reads a log.
    """
    gc.freeze()
