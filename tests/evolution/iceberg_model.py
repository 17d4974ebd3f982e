"""Iceberg's update of a schema in its plainest form: marks on a tree, then the tree is read.

It knows no changes, events or folds: what an update leads to is looked up, not computed in steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field

from ledger import DataField, Schema
from ledger.model import can_promote
from ledger.model.types import ArrayType, DataType, MapType, RowType

Leaf = tuple[Any, ...]


class RefusedError(Exception):
    """The update cannot be."""


@define(eq=False)
class Node:
    name: str
    type: DataType
    field_id: int | None
    part: str = "column"
    doc: str | None = None
    default: str | None = None
    initial: str | None = None
    parent: Node | None = None
    children: list[Node] = field(factory=list)
    deleted: bool = False
    touched: bool = False
    added: bool = False
    new_name: str | None = None
    moves: list[tuple[Node, str, Node | None]] = field(factory=list)

    def above(self) -> Iterator[Node]:
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def is_gone(self) -> bool:
        return any(each.deleted for each in self.above())

    def in_key(self) -> bool:
        return any(each.part == "key" for each in self.above())


def _node(column: DataField, parent: Node) -> Node:
    node = Node(
        column.name,
        column.type,
        column.id,
        doc=column.description,
        default=column.default_value,
        initial=column.initial_default,
        parent=parent,
    )
    _grow(node)
    return node


def _grow(node: Node) -> None:
    match node.type:
        case RowType(fields=fields):
            node.children = [_node(each, node) for each in fields]
        case ArrayType(element=element):
            node.children = [Node("element", element, None, "element", parent=node)]
        case MapType(key=key, value=value):
            node.children = [
                Node("key", key, None, "key", parent=node),
                Node("value", value, None, "value", parent=node),
            ]
        case _:
            return
    for each in node.children:
        if each.part != "column":
            _grow(each)


class Model:
    def __init__(self, schema: Schema) -> None:
        self.root = Node("", RowType(schema.fields), None, "root")
        _grow(self.root)
        self.highest = schema.highest_field_id
        self.identifiers: list[Node] = [
            each for each in self._all(self.root) if each.field_id in schema.identifier_field_ids
        ]
        self.named: list[str] | None = None
        self.allows = False

    def _all(self, node: Node) -> Iterator[Node]:
        for each in node.children:
            yield each
            yield from self._all(each)

    def old(self, name: str) -> Node | None:
        """Follow a name through the tree, stepping into structs of lists and maps unsaid."""
        return _follow(self.root, name.split("."), lambda each: not each.added)

    def new(self, name: str) -> Node | None:
        for each in self._all(self.root):
            if each.added and name in _names(each):
                return each
        return None

    def _target(self, name: str) -> Node:
        node = self.old(name) or self.new(name)
        if node is None or node.is_gone() or node.in_key():
            raise RefusedError
        return node

    def _column(self, name: str) -> Node:
        node = self.old(name)
        if node is None or node.part != "column" or node.in_key():
            raise RefusedError
        return node

    def add(
        self, path: tuple[str, ...], wanted: DataType, *, required: bool, default: str | None
    ) -> None:
        parent = self.root
        if len(path) > 1:
            found = self.old(".".join(path[:-1]))
            if found is None or found.in_key():
                raise RefusedError
            parent = _struct(found)
        if not isinstance(parent.type, RowType) or parent.is_gone():
            raise RefusedError
        if any(each.name == path[-1] and not each.deleted for each in parent.children):
            raise RefusedError
        if default is not None and wanted.depth:
            raise RefusedError
        if required and default is None and not self.allows:
            raise RefusedError
        self.highest += 1
        node = Node(path[-1], wanted.with_nullability(not required), self.highest, parent=parent)
        node.default = node.initial = default
        node.added = True
        _grow(node)
        for each in node.children:
            self.highest += 1
            each.field_id = self.highest
        parent.children.append(node)

    def delete(self, name: str) -> None:
        node = self._column(name)
        if node.touched or any(each.added for each in self._all(node)):
            raise RefusedError
        node.deleted = True

    def rename(self, name: str, new_name: str) -> None:
        node = self._column(name)
        if node.is_gone():
            raise RefusedError
        node.new_name, node.touched = new_name, True

    def retype(self, name: str, wanted: DataType) -> None:
        node = self._target(name)
        if node.type.with_nullability(nullable=True) == wanted:
            return
        if node.type.depth or not can_promote(node.type, wanted, format_version=2):
            raise RefusedError
        node.type, node.touched = wanted.with_nullability(node.type.nullable), True

    def comment(self, name: str, doc: str) -> None:
        node = self._target(name)
        if node.part != "column":
            raise RefusedError
        if node.doc != doc or node.touched:
            node.doc, node.touched = doc, True

    def set_default(self, name: str, default: str) -> None:
        node = self._target(name)
        if node.part != "column" or node.type.depth:
            raise RefusedError
        if node.default != default or node.touched:
            node.default, node.touched = default, True

    def nullability(self, name: str, *, nullable: bool) -> None:
        node = self._target(name)
        if node.type.nullable is nullable:
            return
        is_free = self.allows or (node.added and node.initial is not None)
        if not nullable and not is_free:
            raise RefusedError
        node.type, node.touched = node.type.with_nullability(nullable), True

    def move(self, name: str, kind: str, reference: str | None) -> None:
        mover = self._movable(name)
        other = None if reference is None else self._movable(reference)
        if other is mover or (other is not None and other.parent is not mover.parent):
            raise RefusedError
        assert mover.parent is not None
        mover.parent.moves.append((mover, kind, other))

    def _movable(self, name: str) -> Node:
        node = self.new(name) or self.old(name)
        if node is None or node.part != "column" or node.in_key() or node.is_gone():
            raise RefusedError
        return node

    def result(self) -> tuple[tuple[Leaf, ...], tuple[int, ...]]:
        """Return the columns, and the identifier fields' ids."""
        columns = tuple(_leaf(each) for each in _ordered(self.root))
        wanted = self.identifiers
        if self.named is not None:
            wanted = []
            for name in self.named:
                node = self.old(name)
                node = self.new(name) if node is None or node.is_gone() else node
                if node is None:
                    raise RefusedError
                wanted.append(node)
        for node in wanted:
            outer = list(node.above())[:-1]
            if node.is_gone() or any(each.part != "column" for each in outer):
                raise RefusedError
            if node.type.depth or node.type.root in {"FLOAT", "DOUBLE"}:
                raise RefusedError
            if any(each.type.nullable for each in outer):
                raise RefusedError
        return columns, tuple(sorted({each.field_id or 0 for each in wanted}))


def _follow(node: Node, names: list[str], allowed: Any) -> Node | None:
    if not names:
        return node
    for each in node.children:
        if each.name == names[0] and allowed(each):
            return _follow(each, names[1:], allowed)
    for each in node.children:
        if each.part in {"element", "value"} and isinstance(each.type, RowType):
            return _follow(each, names, allowed)
    return None


def _names(node: Node) -> set[str]:
    """Return the names of a new column: in full, and with the parts left out that may be."""
    parents = list(node.above())[1:-1]
    full = [each.name for each in reversed(parents)]
    skipped = [*full[:-1]] if parents and parents[0].part in {"element", "value"} else full
    return {".".join([*each, node.name]) for each in (full, skipped)}


def _struct(node: Node) -> Node:
    inner = [each for each in node.children if each.part in {"element", "value"}]
    return inner[0] if inner else node


def _ordered(node: Node) -> list[Node]:
    order = [each for each in node.children if not each.deleted]
    for mover, kind, other in node.moves:
        if mover not in order or (other is not None and other not in order):
            raise RefusedError
        order.remove(mover)
        place = 0 if other is None else order.index(other) + (kind == "AFTER")
        order.insert(place, mover)
    names = [each.new_name or each.name for each in order]
    if len(set(names)) < len(names) or not names:
        raise RefusedError
    return order


def _leaf(node: Node) -> Leaf:
    struct = node
    inside: tuple[Leaf, ...] = ()
    if isinstance(node.type, RowType):
        inside = tuple(_leaf(each) for each in _ordered(struct))
    elif node.children:
        inside = tuple(_leaf(each) for each in node.children)
    return (
        node.field_id,
        node.new_name or node.name,
        node.type.root,
        node.type.nullable,
        node.doc,
        node.default,
        node.initial,
        inside,
    )


def leaves(schema: Schema) -> tuple[Leaf, ...]:
    """Return a schema's columns as the model shows them."""
    return tuple(_leaf(each) for each in _ordered(Model(schema).root))
