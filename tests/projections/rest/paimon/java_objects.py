"""Java objects of Paimon in the JVM of a Spark session, called by reflection.

Py4J calls only methods of public classes, and most of Paimon's are not. An object here carries the
public type that a method declares for it, and is called through that type.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from tests.readers.java_core import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAIMON = "org.apache.paimon."
_BOXES = {
    "TINYINT": "Byte",
    "SMALLINT": "Short",
    "INTEGER": "Integer",
    "BIGINT": "Long",
    "FLOAT": "Float",
    "DOUBLE": "Double",
    "BOOLEAN": "Boolean",
}


class JavaError(Exception):
    """An exception of Java.

    Attributes:
        kind: The simple name of its class.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class _Package:
    """A package of Java that remembers its classes: Py4J asks for each part of a name each time."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped]  # ships none

        found = getattr(self._package, name)
        remembered = _Package(found) if isinstance(found, JavaPackage) else found
        self.__dict__[name] = remembered
        return remembered


@define
class PaimonJvm:
    """The JVM, and the methods that were looked up in it.

    Attributes:
        java: The package `java`.
        paimon: The package of Paimon, for constructors and static methods of public classes.
    """

    gateway: Any
    loader: Any
    java: Any
    paimon: Any
    _methods: dict[tuple[str, str, int], list[tuple[Any, list[Any], str]]] = field(factory=dict)

    @classmethod
    @contextmanager
    def running(cls, spark: SparkSession) -> Iterator[PaimonJvm]:
        """Load Paimon's classes; the JVM's thread uses them meanwhile.

        Raises:
            PaimonUnavailableError: The jar is in no cache, and Maven Central does not answer.
        """
        loader = java_classes(spark)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        java, paimon = gateway.jvm.java, gateway.jvm.org.apache.paimon
        found = cls(gateway, loader, _Package(java), _Package(paimon))
        with found.used_by_thread():
            yield found

    @contextmanager
    def used_by_thread(self) -> Iterator[None]:
        """Let the JVM's thread of this thread use Paimon's classes meanwhile."""
        thread = self.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self.loader)
        yield
        thread.setContextClassLoader(before)

    def call(self, target: JavaObject, name: str, *arguments: Any) -> Any:
        """Call a method of a public type.

        Raises:
            JavaError: The method raises an exception.
        """
        from py4j.java_gateway import (
            JavaObject as PlainObject,
        )
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships none

        values = [self.plain(each) for each in arguments]
        method, returned = self._method(target.type_name, name, values)
        try:
            found = method.invoke(target.plain, self.objects(values))
        except Py4JJavaError as error:
            cause = error.java_exception
            while cause.getClass().getName() == "java.lang.reflect.InvocationTargetException":
                cause = cause.getCause()
            raise JavaError(cause.getClass().getSimpleName(), str(cause.getMessage())) from None
        if isinstance(found, PlainObject) and returned.startswith(_PAIMON):
            return JavaObject(self, returned.removeprefix(_PAIMON), found)
        return found

    def constructor(self, type_name: str) -> Callable[..., Any]:
        """Return the only constructor of a class."""
        (found,) = self._class(type_name).getConstructors()
        return lambda *values: found.newInstance(self.objects(self.plain(each) for each in values))

    def plain(self, value: Any) -> Any:
        """Return a value as Py4J sends it: lists and mappings become Java's."""
        if isinstance(value, JavaObject):
            return value.plain
        if isinstance(value, list):
            return self.array_list(value)
        if isinstance(value, dict):
            return self.linked_map(value)
        return value

    def array_list(self, values: Iterable[Any]) -> Any:
        """Return an `ArrayList`."""
        found = self.java.util.ArrayList()
        for each in values:
            found.add(self.plain(each))
        return found

    def linked_map(self, values: Mapping[Any, Any]) -> Any:
        """Return a `LinkedHashMap`."""
        found = self.java.util.LinkedHashMap()
        for key, value in values.items():
            found.put(self.plain(key), self.plain(value))
        return found

    def singleton_map(self, key: Any, value: Any) -> Any:
        """Return a map with one entry, whose key keeps its Java class if it is `Boxed`."""
        types = self.gateway.new_array(self.gateway.jvm.java.lang.Class, 2)
        types[0] = types[1] = self.gateway.jvm.java.lang.Class.forName("java.lang.Object")
        collections = self.gateway.jvm.java.lang.Class.forName("java.util.Collections")
        method = collections.getMethod("singletonMap", types)
        return method.invoke(None, self.objects([key, self.plain(value)]))

    def objects(self, values: Iterable[Any]) -> Any:
        """Return an `Object[]`; elements that are `Boxed` keep their Java class."""
        chosen = list(values)
        found = self.gateway.new_array(self.java.lang.Object, len(chosen))
        for place, each in enumerate(chosen):
            if isinstance(each, Boxed):
                box = self.gateway.new_array(getattr(self.java.lang, each.kind), 1)
                box[0] = each.value
                self.java.lang.System.arraycopy(box, 0, found, place, 1)
            else:
                found[place] = each
        return found

    def strings(self, values: Iterable[str]) -> Any:
        """Return a `String[]`."""
        chosen = list(values)
        found = self.gateway.new_array(self.java.lang.String, len(chosen))
        for place, each in enumerate(chosen):
            found[place] = each
        return found

    def to_json(self, value: Any) -> Any:
        """Return the JSON of one of Paimon's objects, or of a list of them."""
        return json.loads(self.paimon.utils.JsonSerdeUtil.toFlatJson(value))

    def from_json(self, document: Any, type_name: str) -> Any:
        """Return the object of a type that a JSON document describes."""
        text = json.dumps(document)
        return self.paimon.utils.JsonSerdeUtil.fromJson(text, self._class(type_name))

    def cell(self, value: Any, kind: Any) -> Any:
        """Return a value of a column as Paimon's rows hold it."""
        root = kind.getTypeRoot().name()
        if value is None:
            return None
        if root in _BOXES:
            return Boxed(_BOXES[root], value)
        return getattr(self, f"_{root.lower()}")(value, kind)

    def _varchar(self, value: str, kind: Any) -> Any:
        del kind
        return self.paimon.data.BinaryString.fromString(value)

    def _date(self, value: dt.date, kind: Any) -> Boxed:
        del kind
        return Boxed("Integer", (value - dt.date(1970, 1, 1)).days)

    def _decimal(self, value: Decimal, kind: Any) -> Any:
        number = self.java.math.BigDecimal(str(value))
        decimals = self.paimon.data.Decimal
        return decimals.fromBigDecimal(number, kind.getPrecision(), kind.getScale())

    def _row(self, value: Mapping[str, Any], kind: Any) -> Any:
        return self.row(value.values(), list(kind.getFieldTypes()))

    def _array(self, value: Iterable[Any], kind: Any) -> Any:
        cells = [self.cell(each, kind.getElementType()) for each in value]
        return self.paimon.data.GenericArray(self.objects(cells))

    def _map(self, value: Mapping[str, Any], kind: Any) -> Any:
        # Py4J puts an Integer where a number is; other numbers would need a box.
        assert kind.getValueType().getTypeRoot().name() in ("INTEGER", "VARCHAR")
        entries = self.java.util.LinkedHashMap()
        for key, each in value.items():
            found = self.cell(each, kind.getValueType())
            plain = found.value if isinstance(found, Boxed) else found
            entries.put(self.cell(key, kind.getKeyType()), plain)
        return self.paimon.data.GenericMap(entries)

    def row(self, values: Iterable[Any], kinds: Iterable[Any]) -> Any:
        """Return a `GenericRow`."""
        cells = [self.cell(value, kind) for value, kind in zip(values, kinds, strict=True)]
        return self.paimon.data.GenericRow.of(self.objects(cells))

    def _class(self, name: str) -> Any:
        return self.loader.loadClass(_PAIMON + name)

    def _method(self, type_name: str, name: str, values: list[Any]) -> tuple[Any, str]:
        key = type_name, name, len(values)
        if key not in self._methods:
            found = [
                each
                for each in self._class(type_name).getMethods()
                if each.getName() == name
                and each.getParameterCount() == len(values)
                and not each.isBridge()
            ]
            # What the type itself declares may return a more specific type.
            found.sort(key=lambda each: each.getDeclaringClass().getName() != _PAIMON + type_name)
            self._methods[key] = [
                (each, list(each.getParameterTypes()), each.getReturnType().getName())
                for each in found
            ]
        for method, taken, returned in self._methods[key]:
            pairs = zip(taken, values, strict=True)
            if len(self._methods[key]) == 1 or all(_is_taken(*each) for each in pairs):
                return method, returned
        raise AttributeError(f"{type_name}.{name} of {len(values)} arguments")


@frozen
class Boxed:
    """A number as an object of one of Java's classes, such as `Long`."""

    kind: str
    value: Any


@frozen
class JavaObject:
    """An object, seen through a public type of Paimon.

    Attributes:
        plain: The object as Py4J has it.
    """

    _jvm: PaimonJvm
    type_name: str
    plain: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._jvm.call, self, name)

    def seen_as(self, type_name: str) -> JavaObject:
        """Return the object, seen through another of its types."""
        return JavaObject(self._jvm, type_name, self.plain)


def _is_taken(taken: Any, value: Any) -> bool:
    """Return whether a parameter takes a value, as far as overloads here differ."""
    name = taken.getName()
    if isinstance(value, bool):
        return name in ("boolean", "java.lang.Boolean")
    if isinstance(value, int):
        return name in ("int", "long", "java.lang.Integer")
    if isinstance(value, Boxed):
        return name in (f"java.lang.{value.kind}", value.kind.lower())
    if isinstance(value, str):
        return name in ("java.lang.String", "java.lang.Object")
    if value is None:
        return not taken.isPrimitive()
    return bool(taken.isInstance(value))
