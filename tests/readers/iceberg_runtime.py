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
