"""Delta's own Spark runtime: a second session beside the shared one, in the same JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COORDINATES = (
    "io.delta:delta-spark_4.1_2.13:4.2.0",
    "io.delta:delta-storage:4.2.0",
    "io.delta:delta-kernel-api:4.2.0",
    "io.delta:delta-kernel-defaults:4.2.0",
    "io.delta:delta-kernel-unitycatalog:4.2.0",
    "io.unitycatalog:unitycatalog-client:0.4.1",
)
_EXTENSIONS = "spark.sql.extensions"


@contextmanager
def delta_session(spark: SparkSession) -> Iterator[SparkSession]:
    """Give a session that knows Delta's statements; the given one stays as it is."""
    from pyspark.sql import SparkSession

    _load(spark)
    jvm = spark._jvm
    assert jvm is not None
    conf = spark.sparkContext._jsc.sc().conf()
    classic = jvm.org.apache.spark.sql.classic.SparkSession
    # Extensions are read once, when a session is made that no other one is the parent of.
    conf.set(_EXTENSIONS, "io.delta.sql.DeltaSparkSessionExtension")
    classic.clearActiveSession()
    classic.clearDefaultSession()
    try:
        made = classic.builder().sparkContext(spark.sparkContext._jsc.sc()).getOrCreate()
    finally:
        conf.remove(_EXTENSIONS)
        classic.setDefaultSession(spark._jsparkSession)
        classic.setActiveSession(spark._jsparkSession)
    session = SparkSession(spark.sparkContext, made)
    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    session.conf.set("spark.sql.catalog.spark_catalog", catalog)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session


def _load(spark: SparkSession) -> None:
    """Fetch the jars by Ivy, from Maven Central or its local caches, as `iceberg_runtime` does."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships none

    jvm = spark._jvm
    assert jvm is not None
    loader = spark._jsparkSession.sharedState().jarClassLoader().getParent()
    for each in COORDINATES:
        uri = jvm.java.net.URI(f"ivy://{each}?transitive=false")
        try:
            found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(uri)
        except Py4JJavaError as error:
            if "unresolved dependency" not in str(error):
                raise
            pytest.skip(f"{each} is in no Ivy or Maven cache, and Maven Central does not answer")
        for place in range(found.size()):
            loader.addURL(jvm.java.io.File(found.apply(place)).toURI().toURL())
