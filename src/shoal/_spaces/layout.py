"""The layout of a space: the parts stored in arrays, and the parts kept as Python objects.

A layout is built once per space. The native code reads it to move values between Python objects and
columns. Only this module depends on the types of spaces; a custom space type is supported by
registering a function with ``@layout_node.register``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from shoal import _native
from shoal.errors import InvalidActionError

__all__ = ["Layout", "Leaf", "Node", "ObjectLeaf", "layout_node"]

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Leaf:
    """One fixed-shape array inside a space.

    ``low`` and ``high`` are the inclusive bounds of the elements of an integer action, or None if
    every value of the dtype is valid.
    """

    kind: ClassVar[str] = "leaf"

    path: str
    description: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    low: npt.NDArray[np.int64] | None = None
    high: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class ObjectLeaf:
    """A part of a space without a fixed shape, whose values are kept as Python objects.

    Gymnasium defines how they are batched, including what is registered with
    ``gymnasium.vector.utils`` for custom space types.
    """

    kind: ClassVar[str] = "object"

    path: str
    space: Space[Any]
    _batched: dict[int, Space[Any]] = field(default_factory=dict, repr=False, compare=False)

    def split(self, batch: Any) -> Iterator[Any]:
        """Iterate over the items of a batch, one per slot."""
        if not isinstance(batch, Sized):
            raise InvalidActionError(
                f"actions{self.path}: got {type(batch).__name__}, expected a sequence with an "
                f"action for each slot ({self.space})"
            )
        count = len(batch)
        if count not in self._batched:
            self._batched[count] = batch_space(self.space, count)
        return iter(iterate(self._batched[count], batch))

    def join(self, items: Sequence[Any]) -> Any:
        """Make a batch from one item per slot."""
        empty: Any = create_empty_array(self.space, len(items))
        return concatenate(self.space, items, empty)


@dataclass(frozen=True)
class DictNode:
    """A Dict space, with its keys in order."""

    kind: ClassVar[str] = "dict"

    path: str
    keys: tuple[str, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True)
class TupleNode:
    """A Tuple space."""

    kind: ClassVar[str] = "tuple"

    path: str
    children: tuple[Node, ...]


Node = Leaf | ObjectLeaf | DictNode | TupleNode


@singledispatch
def layout_node(space: Space[Any], path: str) -> Node:
    """Return the layout of a space; ``path`` is its location in the root space, as ``['a'][0]``.

    Values of spaces without a registered layout are kept as objects.
    """
    if not isinstance(space, Space):
        raise TypeError(f"expected a gymnasium.Space, got {type(space).__name__}: {space!r}")
    return ObjectLeaf(path, space)


def _fixed(space: Space[Any], path: str, low: Any = None, high: Any = None) -> Leaf:
    assert space.dtype is not None
    assert space.shape is not None
    bounds = [
        None if bound is None else np.clip(bound, _INT64.min, _INT64.max).astype(np.int64)
        for bound in (low, high)
    ]
    description = " ".join(str(space).split())
    return Leaf(path, description, np.dtype(space.dtype), tuple(space.shape), *bounds)


@layout_node.register(spaces.Box)
def _box(space: spaces.Box, path: str) -> Leaf:
    return _fixed(space, path)


@layout_node.register(spaces.Discrete)
def _discrete(space: spaces.Discrete, path: str) -> Leaf:
    # Python integers, since start + n may overflow the space's dtype.
    low = int(space.start)
    return _fixed(space, path, np.array([low], object), np.array([low + int(space.n) - 1], object))


@layout_node.register(spaces.MultiDiscrete)
def _multi_discrete(space: spaces.MultiDiscrete, path: str) -> Leaf:
    low = space.start.astype(object)
    return _fixed(space, path, low, low + space.nvec.astype(object) - 1)


@layout_node.register(spaces.MultiBinary)
def _multi_binary(space: spaces.MultiBinary, path: str) -> Leaf:
    return _fixed(space, path, np.zeros(space.shape), np.ones(space.shape))


@layout_node.register(spaces.Dict)
def _dict(space: spaces.Dict, path: str) -> DictNode:
    children = [layout_node(part, f"{path}[{key!r}]") for key, part in space.spaces.items()]
    return DictNode(path, tuple(space.spaces), tuple(children))


@layout_node.register(spaces.Tuple)
def _tuple(space: spaces.Tuple[Any], path: str) -> TupleNode:
    children = [layout_node(part, f"{path}[{k}]") for k, part in enumerate(space.spaces)]
    return TupleNode(path, tuple(children))


@dataclass(frozen=True)
class Layout:
    """The memory layout of the values of a space.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete, Text
        >>> layout = Layout.of(Dict(position=Box(-1, 1, (3,)), gear=Discrete(5), note=Text(9)))
        >>> [(leaf.path, leaf.dtype.name, leaf.shape) for leaf in layout.leaves]
        [("['position']", 'float32', (3,)), ("['gear']", 'int64', ())]
        >>> [leaf.path for leaf in layout.objects]
        ["['note']"]
    """

    space: Space[Any]
    root: Node
    leaves: tuple[Leaf, ...] = field(init=False)
    objects: tuple[ObjectLeaf, ...] = field(init=False)
    tree: _native.Tree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        leaves = tuple(_leaves(self.root))
        set_field = partial(object.__setattr__, self)
        set_field("leaves", tuple(leaf for leaf in leaves if isinstance(leaf, Leaf)))
        set_field("objects", tuple(leaf for leaf in leaves if isinstance(leaf, ObjectLeaf)))
        set_field("tree", _native.Tree(self.root))

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.space, self.root)  # rebuilds the native tree

    @classmethod
    def of(cls, space: Space[Any], *, ordered_like: Space[Any] | None = None) -> Layout:
        """Build the layout of a space.

        Args:
            space: The space.
            ordered_like: A space of the same structure that determines the order of Dict keys.
        """
        root = layout_node(space, "")
        return cls(space, root if ordered_like is None else _reordered(root, ordered_like))


def _reordered(node: Node, like: Space[Any]) -> Node:
    if isinstance(node, DictNode) and isinstance(like, spaces.Dict):
        children = dict(zip(node.keys, node.children, strict=True))
        parts = like.spaces.items()
        ordered = tuple(_reordered(children[key], part) for key, part in parts)
        return DictNode(node.path, tuple(like.spaces), ordered)
    if isinstance(node, TupleNode) and isinstance(like, spaces.Tuple):
        pairs = zip(node.children, like.spaces, strict=True)
        return TupleNode(node.path, tuple(_reordered(child, part) for child, part in pairs))
    return node


def _leaves(node: Node) -> Iterator[Leaf | ObjectLeaf]:
    if isinstance(node, DictNode | TupleNode):
        for child in node.children:
            yield from _leaves(child)
    else:
        yield node
