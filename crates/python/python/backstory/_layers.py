"""Places the nodes of a graph in layers, so that edges lead from left to right.

This is a small version of Sugiyama's method. The longest path to a node determines its layer, and
barycentres determine the order within a layer. An edge that spans several layers gets a dummy node
in each layer between its ends. An edge that closes a cycle may lead from right to left.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A node: its kind and its number.
Key = tuple[str, int]
Edge = tuple[Key, Key]

_SWEEPS = 6


@dataclass
class Layout:
    """The layers, with dummy nodes, and the route of each edge through the layers."""

    layers: list[list[Key]]
    routes: list[list[Key]]


def layered(nodes: list[Key], edges: list[Edge]) -> Layout:
    """Places all nodes and returns the layout."""
    edges = list(dict.fromkeys(edges))
    layer = _layers(nodes, edges)
    layers: list[list[Key]] = [[] for _ in range(1 + max(layer.values(), default=0))]
    for node in nodes:
        layers[layer[node]].append(node)
    routes = []
    dummies = 0
    for start, to in edges:
        route = [start]
        for column in range(layer[start] + 1, layer[to]):
            dummies += 1
            dummy = ("pass", dummies)
            layers[column].append(dummy)
            route.append(dummy)
        routes.append([*route, to])
    _order(layers, routes)
    return Layout(layers, routes)


def _layers(nodes: list[Key], edges: list[Edge]) -> dict[Key, int]:
    """Returns the length of the longest path to each node, ignoring edges that close a cycle."""
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
    # A source is moved to the layer before its first user.
    has_before = {to for _, to in edges}
    for node in order:
        users = [layer[other] for other in after[node] if (node, other) not in closing]
        if node not in has_before and users:
            layer[node] = min(users) - 1
    return layer


def _order(layers: list[list[Key]], routes: list[list[Key]]) -> None:
    """Sorts each layer by the mean position of the neighbours in the adjacent layer."""
    left: dict[Key, list[Key]] = {}
    right: dict[Key, list[Key]] = {}
    for route in routes:
        for start, to in zip(route, route[1:]):
            right.setdefault(start, []).append(to)
            left.setdefault(to, []).append(start)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        beside = left if forth else right
        for layer in layers if forth else reversed(layers):
            position = {node: at for column in layers for at, node in enumerate(column)}
            layer.sort(key=lambda node: _mean(node, beside, position))


def _mean(node: Key, beside: dict[Key, list[Key]], position: dict[Key, int]) -> float:
    others = [position[other] for other in beside.get(node, ())]
    return sum(others) / len(others) if others else float(position[node])
