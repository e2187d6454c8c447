//! The graph of SPADE's query shell: the vertices and edges of `export opm`, and sets of them.
//!
//! An edge leads from the effect to its cause, as in SPADE.

use std::collections::{BTreeMap, BTreeSet};

use backstory_export::{OpmElement, View, opm_elements};

/// An edge's ends, as positions among the vertices, and when information can have flowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub effect: usize,
    pub cause: usize,
    pub start: i64,
    pub end: i64,
}

/// The whole graph: `$base`.
#[derive(Debug, Default)]
pub(super) struct BaseGraph {
    pub vertices: Vec<OpmElement>,
    pub edges: Vec<OpmElement>,
    pub ends: Vec<Ends>,
}

/// A set of vertices and edges, by their positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub vertices: BTreeSet<usize>,
    pub edges: BTreeSet<usize>,
}

impl BaseGraph {
    /// The graph of a view.
    pub(super) fn of(view: &View) -> BaseGraph {
        let mut base = BaseGraph::default();
        let mut known: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for element in opm_elements(view) {
            if let Some(id) = value(&element, "id") {
                known.insert(id.to_vec(), base.vertices.len());
                base.vertices.push(element);
                continue;
            }
            let end = |key: &str| known.get(value(&element, key)?).copied();
            let (Some(effect), Some(cause)) = (end("from"), end("to")) else {
                continue;
            };
            let interval = element.interval;
            base.ends.push(Ends {
                effect,
                cause,
                start: interval.map_or(i64::MIN, |interval| interval.start),
                end: interval.map_or(i64::MAX, |interval| interval.end),
            });
            base.edges.push(element);
        }
        base
    }

    /// All of it.
    pub(super) fn whole(&self) -> Part {
        Part {
            vertices: (0..self.vertices.len()).collect(),
            edges: (0..self.edges.len()).collect(),
        }
    }
}

impl Part {
    /// `+`, `-` or `&`.
    pub(super) fn joined(&self, sign: &str, other: &Part) -> Part {
        let join = |one: &BTreeSet<usize>, other: &BTreeSet<usize>| match sign {
            "+" => one | other,
            "-" => one - other,
            _ => one & other,
        };
        Part {
            vertices: join(&self.vertices, &other.vertices),
            edges: join(&self.edges, &other.edges),
        }
    }
}

/// The value of an annotation.
pub(super) fn value<'a>(element: &'a OpmElement, key: &str) -> Option<&'a [u8]> {
    let mut all = element.annotations.iter();
    all.find(|(known, _)| known == key)
        .map(|(_, value)| &value[..])
}

/// True if a value matches a text with `%` for any characters and `_` for one, in any case.
pub(super) fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'%', rest)) => (0..=text.len()).any(|at| is_like(rest, &text[at..])),
        Some((wanted, rest)) => text.split_first().is_some_and(|(found, after)| {
            (*wanted == b'_' || wanted.eq_ignore_ascii_case(found)) && is_like(rest, after)
        }),
    }
}
