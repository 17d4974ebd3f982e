"""Iceberg's own Spark runtime, in the JVM of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COORDINATES = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
_EXTENSIONS = "spark.sql.extensions"
_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@contextmanager
def hadoop_catalog(spark: SparkSession, url: str) -> Iterator[SparkSession]:
    """Give a session a Hadoop catalog on a ledger's root, by the name that `catalog_of` gives."""
    _load(spark)
    catalog = f"spark.sql.catalog.{catalog_of(url)}"
    settings = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": url,
        f"{catalog}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield spark
    finally:
        for key in settings:
            spark.conf.unset(key)


def catalog_of(url: str) -> str:
    """Return the catalog's name: Spark never forgets where one of that name was."""
    return Path(url).name


def _load(spark: SparkSession) -> None:
    """Fetch the jar by Ivy, from Maven Central or its local caches, for driver and executor alike.

    `ADD JAR` gives each of them classes of its own, and Iceberg hands objects from one to the
    other.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships none

    jvm = spark._jvm
    assert jvm is not None
    uri = jvm.java.net.URI(f"ivy://{COORDINATES}?transitive=false")
    try:
        found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(uri)
    except Py4JJavaError as error:
        if "unresolved dependency" not in str(error):
            raise
        pytest.skip(f"{COORDINATES} is in no Ivy or Maven cache, and Maven Central does not answer")
    loader = spark._jsparkSession.sharedState().jarClassLoader().getParent()
    for place in range(found.size()):
        loader.addURL(jvm.java.io.File(found.apply(place)).toURI().toURL())


@contextmanager
def rest_catalog(spark: SparkSession, uri: str, name: str) -> Iterator[SparkSession]:
    """Give a session that knows Iceberg's statements, with a catalog behind a REST server.

    Args:
        spark: The session whose JVM is used; it stays as it is.
        uri: The server.
        name: The catalog's, used for no other server before.
    """
    from pyspark.sql import SparkSession

    _load(spark)
    jvm = spark._jvm
    assert jvm is not None
    conf = spark.sparkContext._jsc.sc().conf()
    classic = jvm.org.apache.spark.sql.classic.SparkSession
    # Extensions are read once, when a session is made that no other one is the parent of.
    conf.set(_EXTENSIONS, _ICEBERG_EXTENSIONS)
    classic.clearActiveSession()
    classic.clearDefaultSession()
    try:
        made = classic.builder().sparkContext(spark.sparkContext._jsc.sc()).getOrCreate()
    finally:
        conf.remove(_EXTENSIONS)
        classic.setDefaultSession(spark._jsparkSession)
        classic.setActiveSession(spark._jsparkSession)
    session = SparkSession(spark.sparkContext, made)
    catalog = f"spark.sql.catalog.{name}"
    for key, value in {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": uri,
        f"{catalog}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        session.conf.set(key, value)
    yield session
