"""Converts a lineage to networkx graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx

if TYPE_CHECKING:
    from .tables import Answer

Graph = Any


def processes(nodes: Answer, links: Answer) -> Graph:
    """Returns a graph with a node for each process and version, and an edge for each link."""
    graph: Graph = networkx.MultiDiGraph()
    for number, facts in enumerate(nodes.to_dicts()):
        known = {name: value for name, value in facts.items() if value is not None}
        graph.add_node(number, **known)
    columns = [links[name] for name in ("from", "to", "flow", "how", "certainty", "start", "end")]
    graph.add_edges_from(
        (start, to, {"flow": flow, "how": how, "certainty": certainty, "start": begin, "end": end})
        for start, to, flow, how, certainty, begin, end in zip(*columns)
    )
    return graph


def steps(files: Answer, steps: Answer, roots: list[int]) -> Graph:
    """Returns a graph with a node for each command and file, and an edge for each use."""
    graph: Graph = networkx.MultiDiGraph()
    for number, facts in enumerate(files.to_dicts()):
        graph.add_node(("file", number), type="file", root=number in roots, **facts)
    for number, facts in enumerate(steps.to_dicts()):
        inputs, outputs = facts.pop("inputs"), facts.pop("outputs")
        graph.add_node(("step", number), type="step", **facts)
        graph.add_edges_from((("file", file), ("step", number)) for file in inputs)
        graph.add_edges_from((("step", number), ("file", file)) for file in outputs)
    return graph
