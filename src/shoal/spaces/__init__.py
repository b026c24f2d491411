"""Spaces: how their values lie in memory, and how they are batched."""

from shoal.spaces.batching import ObservationMode, VectorSpaces, agree
from shoal.spaces.layout import Layout, Leaf, Node, ObjectLeaf, layout_node

__all__ = [
    "Layout",
    "Leaf",
    "Node",
    "ObjectLeaf",
    "ObservationMode",
    "VectorSpaces",
    "agree",
    "layout_node",
]
