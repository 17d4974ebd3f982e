"""Check of the Python that Spark's executors on this machine run.

Spark starts `PYSPARK_PYTHON`, or else the `python3` on PATH, which is another one than the caller's
where a virtual environment is not activated. It then fails with a module that is missing, or inside
of a long traceback. Executors on other machines cannot be asked without a job, and are not.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ledger.model.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED: Final = ("ledger", "projections", "msgspec", "attrs", "pyarrow", "fsspec")
_PROBE: Final = """
import json, sys
from importlib.util import find_spec
missing = [each for each in sys.argv[1:] if find_spec(each) is None]
print(json.dumps(["%d.%d" % sys.version_info[:2], missing]))
"""
_ANSWER_WITHIN_S: Final = 30


def require_executor_python(spark: SparkSession) -> None:
    """Check that executors on this machine run this Python version, with lakeledger.

    Args:
        spark: The session; nothing is checked for a cluster, or for Spark Connect.

    Raises:
        MissingDependencyError: They run another version, or one without lakeledger; the message
            names both and the fix.
    """
    from pyspark.errors import PySparkException

    try:
        context: Any = spark.sparkContext
    except PySparkException:
        # Of Spark Connect: the executors are those of its server.
        return
    if not context.master.startswith("local"):
        return
    command = shutil.which(context.pythonExec) or context.pythonExec
    if command == sys.executable:
        return
    paths = (context.environment.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", ""))
    problem = _find_problem(command, os.pathsep.join(each for each in paths if each))
    if problem is not None:
        version = ".".join(map(str, sys.version_info[:2]))
        raise MissingDependencyError(
            f"Spark's executors run {command}, {problem}; this program runs {sys.executable} "
            f"(Python {version}), and both need the same version, with lakeledger. Set "
            'os.environ["PYSPARK_PYTHON"] = sys.executable before the session is created, or '
            "PYSPARK_PYTHON in the environment"
        )


@lru_cache(maxsize=16)
def _find_problem(command: str, python_path: str) -> str | None:
    """Return why a Python cannot run lakeledger's tasks; None if it can."""
    environment = {**os.environ, "PYTHONPATH": python_path}
    try:
        answer = subprocess.run(  # noqa: S603 - the same program that Spark will start
            [command, "-c", _PROBE, *_NEEDED],
            capture_output=True,
            text=True,
            check=True,
            timeout=_ANSWER_WITHIN_S,
            env=environment,
        ).stdout
        version, missing = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"which does not run as Python 3 ({type(error).__name__})"
    if version != ".".join(map(str, sys.version_info[:2])):
        return f"which is Python {version}"
    return f"which does not have {', '.join(missing)}" if missing else None
