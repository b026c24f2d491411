"""Spaces: how their values lie in memory, and how they are batched."""

from shoal._spaces.batching import ObservationMode, VectorSpaces, agree
from shoal._spaces.layout import Layout, Leaf, Node, ObjectLeaf, layout_node

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
