"""Places the nodes of a graph in layers, so that edges lead from left to right.

It is the method of Sugiyama, in small: the longest path gives the layer, and barycentres give the
order in a layer. An edge over several layers has a place in each of them. An edge of a cycle may
lead back.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A node: its kind and number.
Key = tuple[str, int]
Edge = tuple[Key, Key]

_SWEEPS = 6


@dataclass
class Layout:
    """Layers of nodes and of places that edges pass, and the ways of the edges through them."""

    layers: list[list[Key]]
    ways: list[list[Key]]


def layered(nodes: list[Key], edges: list[Edge]) -> Layout:
    """Places all nodes."""
    edges = list(dict.fromkeys(edges))
    layer = _layers(nodes, edges)
    layers: list[list[Key]] = [[] for _ in range(1 + max(layer.values(), default=0))]
    for node in nodes:
        layers[layer[node]].append(node)
    ways = []
    passed = 0
    for start, to in edges:
        way = [start]
        for column in range(layer[start] + 1, layer[to]):
            passed += 1
            place = ("pass", passed)
            layers[column].append(place)
            way.append(place)
        ways.append([*way, to])
    _order(layers, ways)
    return Layout(layers, ways)


def _layers(nodes: list[Key], edges: list[Edge]) -> dict[Key, int]:
    """The longest path to each node, without the edges that close a cycle."""
    after: dict[Key, list[Key]] = {node: [] for node in nodes}
    for start, to in edges:
        after[start].append(to)
    order: list[Key] = []
    open_: set[Key] = set()
    done: set[Key] = set()
    closing: set[Edge] = set()
    for root in nodes:
        stack = [(root, iter(after[root]))] if root not in done else []
        open_.update([root] if stack else [])
        while stack:
            node, others = stack[-1]
            for other in others:
                if other in open_:
                    closing.add((node, other))
                elif other not in done:
                    open_.add(other)
                    stack.append((other, iter(after[other])))
                    break
            else:
                stack.pop()
                open_.discard(node)
                done.add(node)
                order.append(node)
    layer = dict.fromkeys(nodes, 0)
    for node in reversed(order):
        for other in after[node]:
            if (node, other) not in closing:
                layer[other] = max(layer[other], layer[node] + 1)
    # A source stands just before its first user.
    has_before = {to for _, to in edges}
    for node in order:
        users = [layer[other] for other in after[node] if (node, other) not in closing]
        if node not in has_before and users:
            layer[node] = min(users) - 1
    return layer


def _order(layers: list[list[Key]], ways: list[list[Key]]) -> None:
    """Sorts each layer by the mean place of the neighbours in the layer before or after it."""
    left: dict[Key, list[Key]] = {}
    right: dict[Key, list[Key]] = {}
    for way in ways:
        for start, to in zip(way, way[1:]):
            right.setdefault(start, []).append(to)
            left.setdefault(to, []).append(start)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        beside = left if forth else right
        for layer in layers if forth else reversed(layers):
            place = {node: at for column in layers for at, node in enumerate(column)}
            layer.sort(key=lambda node: _mean(node, beside, place))


def _mean(node: Key, beside: dict[Key, list[Key]], place: dict[Key, int]) -> float:
    others = [place[other] for other in beside.get(node, ())]
    return sum(others) / len(others) if others else float(place[node])
