"""Memory layout and batching of spaces."""

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
