"""Between values in the structure of their space and their leaves in the order of the layout."""

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
"""An array for each leaf, and for each part of no fixed shape a list with an item for each row."""


def batch_leaves(layout: Layout, batch: Any) -> Leaves:
    """The leaves of a batch, in the order of the layout.

    >>> from gymnasium.spaces import Box, Dict, Text
    >>> layout = Layout.of(Dict(height=Box(0, 9), note=Text(5)))
    >>> batch_leaves(layout, {"height": np.ones((2, 1)), "note": ("up", "down")})
    ([array([[1.],
           [1.]])], [['up', 'down']])
    """
    if isinstance(layout.root, Leaf):  # most spaces: not worth a walk
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
    """The batch, in the structure of its space, that has these leaves."""
    if isinstance(layout.root, Leaf):
        return arrays[0]
    columns, lists = iter(arrays), iter(objects)
    return structured(
        layout, lambda part: next(columns) if isinstance(part, Leaf) else part.join(next(lists))
    )


def take_rows(leaves: Leaves, rows: Any) -> Leaves:
    """Some rows of each leaf."""
    arrays, objects = leaves
    return [array[rows] for array in arrays], [[items[row] for row in rows] for items in objects]


def join_leaves(leaves: Sequence[Leaves]) -> Leaves:
    """The leaves with the rows of several, one after the other."""
    arrays = [np.concatenate(parts) for parts in zip(*(found[0] for found in leaves), strict=True)]
    lists = zip(*(found[1] for found in leaves), strict=True)
    return arrays, [[item for part in parts for item in part] for parts in lists]


def value_parts(
    layout: Layout, value: Any, error: type[Exception], what: str
) -> Iterator[tuple[Leaf | ObjectLeaf, Any]]:
    """Each leaf and each part of no fixed shape, with what one value of the space has there.

    Nothing is known of the value: where it lacks a part, this error is raised, and calls it
    ``what``.

    >>> from gymnasium.spaces import Box, Dict
    >>> layout = Layout.of(Dict(height=Box(0, 9)))
    >>> list(value_parts(layout, {"width": 1}, ValueError, "observation"))
    Traceback (most recent call last):
    ValueError: observation: got dict without 'height'
    """
    return _parts(layout.root, value, error, what)


def structured(layout: Layout, part_of: Callable[[Leaf | ObjectLeaf], Any]) -> Any:
    """A value in the structure of the space, of what is called for each of its parts in order."""
    return _structured(layout.root, part_of)


def _walk(node: Node, batch: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a batch that was checked before."""
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
    places = node.keys if isinstance(node, DictNode) else range(len(node.children))
    for place, child in zip(places, node.children, strict=True):
        try:
            part = value[place]
        except (TypeError, LookupError) as cause:
            raise error(
                f"{what}{node.path}: got {type(value).__name__} without {place!r}"
            ) from cause
        yield from _parts(child, part, error, what)


def _structured(node: Node, part_of: Callable[[Leaf | ObjectLeaf], Any]) -> Any:
    if isinstance(node, DictNode):
        children = zip(node.keys, node.children, strict=True)
        return {key: _structured(child, part_of) for key, child in children}
    if isinstance(node, TupleNode):
        return tuple(_structured(child, part_of) for child in node.children)
    return part_of(node)
