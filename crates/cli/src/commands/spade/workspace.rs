//! The variables of SPADE's query shell, and the values of expressions.

use std::collections::{BTreeMap, BTreeSet};

use backstory_export::OpmElement;

use super::graph::{BaseGraph, Part, is_like, value};
use super::reach::{Direction, Search};
use super::syntax::{Argument, Condition, Expression, KeyStatistic, MOST};
use super::words::Token;
use super::{hash, links, statistics};

/// Edges of a lineage or a path, unless a number is given.
const MAX_DEPTH: usize = 5;
/// Vertices and edges that `limit` keeps, unless a number is given.
const LIMIT: usize = 10;
/// Digits behind the point in a statistic, unless a number is given.
const PRECISION: usize = 3;
/// Constraints that refer to each other.
const NAMED: usize = 64;

/// A value, or the line that says why it does not exist.
pub(super) type Answer<T> = Result<T, String>;

/// The graph and the variables.
pub(super) struct Workspace {
    pub base: BaseGraph,
    pub graphs: BTreeMap<String, Part>,
    pub constraints: BTreeMap<String, Condition>,
    pub environment: BTreeMap<String, usize>,
}

impl Workspace {
    /// A workspace without variables.
    pub(super) fn new(base: BaseGraph) -> Workspace {
        Workspace {
            base,
            graphs: BTreeMap::new(),
            constraints: BTreeMap::new(),
            environment: BTreeMap::new(),
        }
    }

    /// `$name = …`, `$name += …` and their like.
    pub(super) fn assign(&mut self, name: String, sign: &str, graph: &Expression) -> Answer<()> {
        if name == "base" {
            return Err("$base is the whole graph, and stays it".to_owned());
        }
        let found = self.graph(graph)?;
        let found = match sign.strip_suffix('=') {
            Some("") | None => found,
            Some(join) => self.variable(&name)?.joined(join, &found),
        };
        self.graphs.insert(name, found);
        Ok(())
    }

    /// Removes variables.
    pub(super) fn erase(&mut self, names: &[Token]) -> Answer<()> {
        for name in names {
            let known = match name {
                Token::Graph(name) => self.graphs.remove(name).is_some(),
                Token::Constraint(name) => self.constraints.remove(name).is_some(),
                Token::Sign(",") => true,
                _ => false,
            };
            if !known {
                return Err("erase: only variables that `list` shows".to_owned());
            }
        }
        Ok(())
    }

    /// The value of an expression.
    pub(super) fn graph(&self, expression: &Expression) -> Answer<Part> {
        match expression {
            Expression::Variable(name) => self.variable(name),
            Expression::Join(sign, one, other) => {
                Ok(self.graph(one)?.joined(sign, &self.graph(other)?))
            }
            Expression::Call(None, name, arguments) => self.function(name, arguments),
            Expression::Call(Some(graph), name, arguments) => {
                self.method(&self.graph(graph)?, name, arguments)
            }
        }
    }

    fn variable(&self, name: &str) -> Answer<Part> {
        match name {
            "base" => Ok(self.base.whole()),
            _ => self
                .graphs
                .get(name)
                .cloned()
                .ok_or_else(|| format!("there is no ${name}")),
        }
    }

    /// `vertices('hash', …)` and `edges('hash', …)`. A vertex may also be named by its id.
    fn function(&self, name: &str, arguments: &[Argument]) -> Answer<Part> {
        let wanted: BTreeSet<&[u8]> = arguments
            .iter()
            .map(|one| match one {
                Argument::Text(text) => Ok(text.as_bytes()),
                _ => Err(format!("{name} takes hashes in single quotes")),
            })
            .collect::<Answer<_>>()?;
        let base = &self.base;
        let is_wanted = |hash: String| wanted.contains(hash.as_bytes());
        let is_vertex = |vertex: &OpmElement| {
            let id = value(vertex, "id").unwrap_or_default();
            wanted.contains(id) || is_wanted(hash::of_vertex(vertex))
        };
        match name {
            "vertices" => Ok(Part {
                vertices: (0..base.vertices.len())
                    .filter(|&at| is_vertex(&base.vertices[at]))
                    .collect(),
                edges: BTreeSet::new(),
            }),
            "edges" => Ok(Part {
                vertices: BTreeSet::new(),
                edges: (0..base.edges.len())
                    .filter(|&edge| is_wanted(hash::of_edge(base, edge)))
                    .collect(),
            }),
            _ => Err(format!("there is no function '{name}'")),
        }
    }

    fn method(&self, graph: &Part, name: &str, arguments: &[Argument]) -> Answer<Part> {
        let base = &self.base;
        let ends = |effects: bool, causes: bool| Part {
            vertices: graph.edges.iter().map(|&edge| base.ends[edge]).fold(
                BTreeSet::new(),
                |mut all, one| {
                    all.extend(effects.then_some(one.effect));
                    all.extend(causes.then_some(one.cause));
                    all
                },
            ),
            edges: BTreeSet::new(),
        };
        match (name.to_ascii_lowercase().as_str(), arguments) {
            ("getvertex", []) => Ok(Part {
                edges: BTreeSet::new(),
                ..graph.clone()
            }),
            ("getvertex", [Argument::Constraint(wanted)]) => Ok(Part {
                vertices: self.matching(&base.vertices, &graph.vertices, wanted)?,
                edges: BTreeSet::new(),
            }),
            ("getedge", []) => Ok(Part {
                vertices: BTreeSet::new(),
                ..graph.clone()
            }),
            ("getedge", [Argument::Constraint(wanted)]) => Ok(Part {
                vertices: BTreeSet::new(),
                edges: self.matching(&base.edges, &graph.edges, wanted)?,
            }),
            ("getedgewithendpoints", wanted) => {
                let found = self.method(graph, "getEdge", wanted)?;
                Ok(links::with_ends(base, found.edges))
            }
            ("getedgeendpoints", []) => Ok(ends(true, true)),
            ("getedgesource", []) => Ok(ends(true, false)),
            ("getedgedestination", []) => Ok(ends(false, true)),
            ("getneighbor", [Argument::Graph(from), Argument::Text(way)]) => {
                let from = &self.graph(from)?.vertices & &graph.vertices;
                let way = directions(way)
                    .ok_or_else(|| format!("getNeighbor: '{way}' is not 'a', 'd' or 'b'"))?;
                Ok(links::neighbours(base, graph, &from, way))
            }
            (
                "getlink",
                [
                    Argument::Graph(one),
                    Argument::Graph(other),
                    Argument::Number(depth),
                ],
            ) => {
                let [one, other] = [self.graph(one)?, self.graph(other)?]
                    .map(|set| &set.vertices & &graph.vertices);
                Ok(links::between(base, graph, (&one, &other), *depth))
            }
            ("getlineage" | "getlocallineage", arguments) => self.lineage(graph, arguments),
            ("getpath" | "getpaths", arguments) => self.paths(graph, arguments, false),
            ("getshortestpath", arguments) => self.paths(graph, arguments, true),
            ("getsubgraph", [Argument::Graph(skeleton)]) => {
                Ok(self.spanned(graph, &self.graph(skeleton)?))
            }
            ("span", [Argument::Graph(source)]) => Ok(self.spanned(&self.graph(source)?, graph)),
            ("getmatch", [Argument::Graph(other), keys @ ..]) if !keys.is_empty() => {
                self.matched(graph, &self.graph(other)?, keys)
            }
            ("limit", []) => Ok(first(graph, self.number("limit", LIMIT))),
            ("limit", [Argument::Number(most)]) => Ok(first(graph, *most)),
            ("collapseedge", keys) => self.collapsed(graph, keys),
            _ => Err(format!(
                "{name} with {} arguments: `help` lists the methods",
                arguments.len()
            )),
        }
    }

    /// The vertices and edges of a graph that are between the vertices of a skeleton.
    fn spanned(&self, graph: &Part, skeleton: &Part) -> Part {
        let inside = |edge: &usize| {
            let ends = self.base.ends[*edge];
            let has = |vertex| skeleton.vertices.contains(&vertex);
            has(ends.effect) && has(ends.cause)
        };
        Part {
            edges: graph.edges.iter().copied().filter(inside).collect(),
            vertices: &skeleton.vertices & &graph.vertices,
        }
    }

    fn search<'a>(&'a self, graph: &'a Part) -> Search<'a> {
        Search {
            base: &self.base,
            part: graph,
            respects_time: self.environment.get("time") != Some(&0),
        }
    }

    /// The rows of a statistic about the vertices or edges of a graph.
    pub(super) fn statistic(&self, wanted: &KeyStatistic) -> Answer<String> {
        let graph = self.graph(&wanted.graph)?;
        let (elements, among) = match wanted.of_edges {
            true => (&self.base.edges, &graph.edges),
            false => (&self.base.vertices, &graph.vertices),
        };
        let digits = wanted.digits;
        let digits = digits.unwrap_or_else(|| self.number("precision", PRECISION));
        let digits = digits.min(MOST);
        let elements = among.iter().map(|&at| &elements[at]);
        statistics::rows(elements, &wanted.key, wanted.statistic, digits)
    }

    fn number(&self, name: &str, usual: usize) -> usize {
        self.environment.get(name).copied().unwrap_or(usual)
    }

    fn lineage(&self, graph: &Part, arguments: &[Argument]) -> Answer<Part> {
        let (from, depth, way) = match arguments {
            [
                Argument::Graph(from),
                Argument::Number(depth),
                Argument::Text(way),
            ] => (from, *depth, way),
            [Argument::Graph(from), Argument::Text(way)] => {
                (from, self.number("maxDepth", MAX_DEPTH), way)
            }
            _ => return Err("getLineage($vertices, depth, 'ancestors')".to_owned()),
        };
        let from = &self.graph(from)?.vertices & &graph.vertices;
        let search = self.search(graph);
        let toward = |way| search.lineage(&from, depth, way);
        let (ancestors, descendants) =
            directions(way).ok_or_else(|| format!("getLineage: '{way}' is not 'a', 'd' or 'b'"))?;
        let mut found = Part::default();
        if ancestors {
            found = toward(Direction::Ancestors);
        }
        if descendants {
            found = found.joined("+", &toward(Direction::Descendants));
        }
        Ok(found)
    }

    /// Paths from a set to the next one, and so on. Each set may have a depth behind it.
    fn paths(&self, graph: &Part, arguments: &[Argument], is_shortest: bool) -> Answer<Part> {
        let wrong = || "getPath($from, $to, depth)".to_owned();
        let [Argument::Graph(from), rest @ ..] = arguments else {
            return Err(wrong());
        };
        let mut from = self.graph(from)?.vertices;
        let (mut rest, mut found) = (rest, Part::default());
        if rest.is_empty() {
            return Err(wrong());
        }
        while let [Argument::Graph(to), after @ ..] = rest {
            let (depth, after) = match after {
                [Argument::Number(depth), after @ ..] => (*depth, after),
                _ => (self.number("maxDepth", MAX_DEPTH), after),
            };
            let to = self.graph(to)?.vertices;
            let search = self.search(graph);
            let part = match is_shortest {
                true => search.shortest(&from, &to, depth),
                false => search.paths(&from, &to, depth),
            };
            if part.vertices.is_empty() {
                return Ok(Part::default());
            }
            found = found.joined("+", &part);
            (from, rest) = (&to & &part.vertices, after);
        }
        match rest {
            [] => Ok(found),
            _ => Err(wrong()),
        }
    }

    /// The vertices of two graphs that have the same values of all of some keys.
    fn matched(&self, one: &Part, other: &Part, keys: &[Argument]) -> Answer<Part> {
        let keys: Vec<&str> = keys
            .iter()
            .map(|key| match key {
                Argument::Text(key) => Ok(key.as_str()),
                _ => Err("getMatch takes keys in single quotes".to_owned()),
            })
            .collect::<Answer<_>>()?;
        let values = |&at: &usize| -> Option<Vec<&[u8]>> {
            let vertex = &self.base.vertices[at];
            keys.iter().map(|key| value(vertex, key)).collect()
        };
        let has = |part: &Part| -> BTreeSet<Vec<&[u8]>> {
            part.vertices.iter().filter_map(values).collect()
        };
        let common: BTreeSet<Vec<&[u8]>> = &has(one) & &has(other);
        let is_common = |at: &usize| values(at).is_some_and(|values| common.contains(&values));
        Ok(Part {
            vertices: (&one.vertices | &other.vertices)
                .into_iter()
                .filter(is_common)
                .collect(),
            edges: BTreeSet::new(),
        })
    }

    /// Of edges between the same vertices with the same values of some keys, the first.
    fn collapsed(&self, graph: &Part, keys: &[Argument]) -> Answer<Part> {
        let mut known = BTreeSet::new();
        let mut edges = BTreeSet::new();
        for &edge in &graph.edges {
            let ends = self.base.ends[edge];
            let values: Vec<Option<&[u8]>> = keys
                .iter()
                .map(|key| match key {
                    Argument::Text(key) => Ok(value(&self.base.edges[edge], key)),
                    _ => Err("collapseEdge takes keys in single quotes".to_owned()),
                })
                .collect::<Answer<_>>()?;
            if known.insert((ends.effect, ends.cause, values)) {
                edges.insert(edge);
            }
        }
        Ok(Part {
            edges,
            vertices: graph.vertices.clone(),
        })
    }

    fn matching(
        &self,
        elements: &[OpmElement],
        among: &BTreeSet<usize>,
        wanted: &Condition,
    ) -> Answer<BTreeSet<usize>> {
        let mut found = BTreeSet::new();
        for &at in among {
            if self.holds(wanted, &elements[at], NAMED)? {
                found.insert(at);
            }
        }
        Ok(found)
    }

    fn holds(&self, wanted: &Condition, element: &OpmElement, names: usize) -> Answer<bool> {
        match wanted {
            Condition::Named(name) => match self.constraints.get(name) {
                Some(known) if names > 0 => self.holds(known, element, names - 1),
                Some(_) => Err(format!("%{name} refers to itself")),
                None => Err(format!("there is no %{name}")),
            },
            Condition::Not(inner) => Ok(!self.holds(inner, element, names)?),
            Condition::All(one, other) => {
                Ok(self.holds(one, element, names)? && self.holds(other, element, names)?)
            }
            Condition::Any(one, other) => {
                Ok(self.holds(one, element, names)? || self.holds(other, element, names)?)
            }
            Condition::Matches(key, pattern) => {
                let mut values = element.annotations.iter();
                Ok(values
                    .any(|(known, value)| (key == "*" || key == known) && pattern.is_in(value)))
            }
            Condition::Compare(key, sign, text) => {
                let mut values = element.annotations.iter();
                Ok(values.any(|(known, value)| {
                    (key == "*" || key == known) && compares(value, sign, text.as_bytes())
                }))
            }
        }
    }
}

/// Whether a direction leads to ancestors, and to descendants.
fn directions(way: &str) -> Option<(bool, bool)> {
    match way.to_ascii_lowercase().as_str() {
        "a" | "ancestor" | "ancestors" => Some((true, false)),
        "d" | "descendant" | "descendants" => Some((false, true)),
        "b" | "both" => Some((true, true)),
        _ => None,
    }
}

fn first(graph: &Part, most: usize) -> Part {
    Part {
        vertices: graph.vertices.iter().copied().take(most).collect(),
        edges: graph.edges.iter().copied().take(most).collect(),
    }
}

/// Compares as numbers if both are numbers, else as texts.
fn compares(value: &[u8], sign: &str, text: &[u8]) -> bool {
    if sign == "like" {
        return is_like(text, value);
    }
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<f64>().ok();
    let order = match (number(value), number(text)) {
        (Some(one), Some(other)) => one.partial_cmp(&other),
        _ => Some(value.cmp(text)),
    };
    match sign {
        "==" => value == text || order.is_some_and(std::cmp::Ordering::is_eq),
        "!=" => value != text && !order.is_some_and(std::cmp::Ordering::is_eq),
        "<" => order.is_some_and(std::cmp::Ordering::is_lt),
        "<=" => order.is_some_and(std::cmp::Ordering::is_le),
        ">" => order.is_some_and(std::cmp::Ordering::is_gt),
        _ => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}
