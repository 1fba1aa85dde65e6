"""What a user knows about a graph beforehand."""

from causalformer.knowledge.entries import WILDCARD, KnownEdge
from causalformer.knowledge.reading import knowledge_from_options, read_knowledge
from causalformer.knowledge.statements import KnownGraph, PriorKnowledge

__all__ = [
    "WILDCARD",
    "KnownEdge",
    "KnownGraph",
    "PriorKnowledge",
    "knowledge_from_options",
    "read_knowledge",
]
