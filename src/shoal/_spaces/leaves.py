"""Conversion between values of a space and their leaves in the order of the layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces.layout import DictNode, Layout, Leaf, Node, ObjectLeaf, TupleNode

__all__ = [
    "Leaves",
    "batch_leaves",
    "batch_of_leaves",
    "join_leaves",
    "structured",
    "take_rows",
    "value_parts",
]

Array = npt.NDArray[Any]

Leaves = tuple[list[Array], list[list[Any]]]
"""An array for each leaf, and for each object leaf a list with an item per row."""


def batch_leaves(layout: Layout, batch: Any) -> Leaves:
    """Return the leaves of a batch, in the order of the layout.

    >>> from gymnasium.spaces import Box, Dict, Text
    >>> layout = Layout.of(Dict(height=Box(0, 9), note=Text(5)))
    >>> batch_leaves(layout, {"height": np.ones((2, 1)), "note": ("up", "down")})
    ([array([[1.],
           [1.]])], [['up', 'down']])
    """
    if isinstance(layout.root, Leaf):  # the common case
        return [batch], []
    arrays: list[Array] = []
    objects: list[list[Any]] = []
    for node, part in _walk(layout.root, batch):
        if isinstance(node, Leaf):
            arrays.append(part)
        else:
            objects.append(list(node.split(part)))
    return arrays, objects


def batch_of_leaves(
    layout: Layout, arrays: Sequence[Array], objects: Sequence[Sequence[Any]]
) -> Any:
    """Return the batch with these leaves, in the structure of its space."""
    if isinstance(layout.root, Leaf):
        return arrays[0]
    columns, lists = iter(arrays), iter(objects)
    return structured(
        layout, lambda part: next(columns) if isinstance(part, Leaf) else part.join(next(lists))
    )


def take_rows(leaves: Leaves, rows: Any) -> Leaves:
    """Select rows of each leaf."""
    arrays, objects = leaves
    return [array[rows] for array in arrays], [[items[row] for row in rows] for items in objects]


def join_leaves(leaves: Sequence[Leaves]) -> Leaves:
    """Concatenate the rows of several batches of leaves."""
    arrays = [np.concatenate(parts) for parts in zip(*(part[0] for part in leaves), strict=True)]
    lists = zip(*(part[1] for part in leaves), strict=True)
    return arrays, [[item for part in parts for item in part] for parts in lists]


def value_parts(
    layout: Layout, value: Any, error: type[Exception], what: str
) -> Iterator[tuple[Leaf | ObjectLeaf, Any]]:
    """Iterate over the leaves and object leaves with the corresponding parts of one value.

    The value need not be in the space. If it lacks a part, ``error`` is raised with a message that
    names the value ``what``.

    >>> from gymnasium.spaces import Box, Dict
    >>> layout = Layout.of(Dict(height=Box(0, 9)))
    >>> list(value_parts(layout, {"width": 1}, ValueError, "observation"))
    Traceback (most recent call last):
    ValueError: observation: got dict without 'height'
    """
    return _parts(layout.root, value, error, what)


def structured(layout: Layout, part_of: Callable[[Leaf | ObjectLeaf], Any]) -> Any:
    """Build a value in the structure of the space by calling ``part_of`` for each leaf in order."""
    return _structured(layout.root, part_of)


def _walk(node: Node, batch: Any) -> Iterator[tuple[Any, Any]]:
    """Iterate over the parts of a batch that is known to be valid."""
    if isinstance(node, DictNode):
        for key, child in zip(node.keys, node.children, strict=True):
            yield from _walk(child, batch[key])
    elif isinstance(node, TupleNode):
        for child, part in zip(node.children, batch, strict=True):
            yield from _walk(child, part)
    else:
        yield node, batch


def _parts(
    node: Node, value: Any, error: type[Exception], what: str
) -> Iterator[tuple[Leaf | ObjectLeaf, Any]]:
    if not isinstance(node, DictNode | TupleNode):
        yield node, value
        return
    keys = node.keys if isinstance(node, DictNode) else range(len(node.children))
    for key, child in zip(keys, node.children, strict=True):
        try:
            part = value[key]
        except (TypeError, LookupError) as cause:
            raise error(f"{what}{node.path}: got {type(value).__name__} without {key!r}") from cause
        yield from _parts(child, part, error, what)


def _structured(node: Node, part_of: Callable[[Leaf | ObjectLeaf], Any]) -> Any:
    if isinstance(node, DictNode):
        children = zip(node.keys, node.children, strict=True)
        return {key: _structured(child, part_of) for key, child in children}
    if isinstance(node, TupleNode):
        return tuple(_structured(child, part_of) for child in node.children)
    return part_of(node)
