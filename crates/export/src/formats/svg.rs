//! The graph as a picture: nodes in layers from left to right, in the direction in which
//! information flowed.
//!
//! Each node stands one layer behind the last of the nodes it comes from. Within a layer, nodes are
//! near their neighbours (a few sweeps of medians). The arrow that closes a cycle goes back.
//!
//! The layout is written here: layout crates draw in styles of their own, and the output must not
//! depend on whether `dot` is installed.

use backstory_ordering::SmallSort;
use std::collections::BTreeSet;
use std::io::Write;

use backstory_graph::model::Certainty;
use backstory_query::ByteUse;

use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::Endpoint;
use crate::{Result, View};

/// `svg`
pub struct Svg;

/// Sizes in pixels.
const ROW: usize = 34;
const BOX: usize = 22;
const GAP: usize = 60;
const LETTER: usize = 7;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }
    fn about(&self) -> &'static str {
        "a picture of the graph"
    }
    fn family(&self) -> Family {
        Family::Picture
    }
    fn proven_by(&self) -> &'static str {
        "an XML parser"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let drawing = Drawing::new(view);
        drawing.write(view, target.stream())
    }
}

struct Drawing {
    labels: Vec<String>,
    arrows: Vec<(usize, usize, Certainty)>,
    /// The arrows from inputs that gave the results of the picture no byte.
    without_bytes: BTreeSet<(usize, usize)>,
    layer: Vec<usize>,
    row: Vec<usize>,
}

impl Drawing {
    fn new(view: &View) -> Drawing {
        let activities = view.activities.len();
        let node = |end: Endpoint| match end {
            Endpoint::Activity(at) => at,
            Endpoint::Entity(at) => activities + at,
        };
        let commands = view
            .activities
            .iter()
            .map(|activity| super::shorten(&activity.label));
        let files = view
            .entities
            .iter()
            .map(|entity| super::entity_label(view, entity));
        let labels: Vec<String> = commands.chain(files).collect();
        let mut arrows: Vec<(usize, usize, Certainty)> = super::drawn(view)
            .map(|link| (node(link.from), node(link.to), link.certainty))
            .filter(|(from, to, _)| from != to)
            .collect();
        arrows.sort_small_by_key(|&(from, to, certainty)| (from, to, std::cmp::Reverse(certainty)));
        arrows.dedup_by_key(|&mut (from, to, _)| (from, to));
        let unused = super::drawn(view).filter(|link| link.bytes == Some(ByteUse::Absent));
        let without_bytes = unused
            .map(|link| (node(link.from), node(link.to)))
            .collect();
        let mut layer = layers(labels.len(), &arrows);
        pull_sources(&mut layer, &arrows);
        let row = rows(&layer, &arrows);
        Drawing {
            labels,
            arrows,
            without_bytes,
            layer,
            row,
        }
    }

    fn write(&self, view: &View, out: &mut dyn Write) -> Result<()> {
        let width = |at: usize| self.labels[at].chars().count() * LETTER + 16;
        let count = self.layer.iter().max().map_or(0, |last| last + 1);
        let mut widths = vec![0; count];
        for at in 0..self.labels.len() {
            widths[self.layer[at]] = widths[self.layer[at]].max(width(at));
        }
        let mut left = vec![GAP / 2; count + 1];
        for layer in 0..count {
            left[layer + 1] = left[layer] + widths[layer] + GAP;
        }
        let height = self.row.iter().max().map_or(0, |last| last + 1) * ROW + 20;
        let place = |at: usize| (left[self.layer[at]], self.row[at] * ROW + 10);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">",
            left[count]
        )?;
        writeln!(out, "<title>{}</title>", super::xml(&view.subject))?;
        writeln!(
            out,
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<g fill=\"none\" stroke=\"#888\">"
        )?;
        for &(from, to, certainty) in &self.arrows {
            let ((x, y), (to_x, to_y)) = (place(from), place(to));
            let (x, y, to_y) = (x + width(from), y + BOX / 2, to_y + BOX / 2);
            let without_bytes = self.without_bytes.contains(&(from, to));
            let dashed = match certainty {
                Certainty::Possible => " stroke-dasharray=\"4 3\"",
                _ if without_bytes => " stroke-dasharray=\"1 3\"",
                _ => "",
            };
            let (end, title) = match without_bytes {
                true => ("</path>", "><title>no byte</title>"),
                false => ("", "/>"),
            };
            let bend = GAP / 2;
            let (near, far) = (x + bend, to_x as i64 - bend as i64);
            writeln!(
                out,
                "<path d=\"M{x} {y}C{near} {y} {far} {to_y} {to_x} {to_y}\"{dashed}{title}{end}"
            )?;
            writeln!(out, "<path fill=\"#888\" d=\"M{to_x} {to_y}l-6 -3v6z\"/>")?;
        }
        writeln!(out, "</g>")?;
        for at in 0..self.labels.len() {
            let ((x, y), width) = (place(at), width(at));
            let (round, fill) = if at < view.activities.len() {
                (BOX / 2, "#dbe9ff")
            } else {
                (2, "#fff3cf")
            };
            write!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" rx=\"{round}\" fill=\"{fill}\" stroke=\"#555\"/>"
            )?;
            let (middle, base, length) = (x + width / 2, y + 15, width - 12);
            let label = super::xml(&self.labels[at]);
            writeln!(
                out,
                "<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\">{label}</text>"
            )?;
        }
        writeln!(out, "</svg>")?;
        Ok(())
    }
}

/// The layer of each node: one behind the last of the nodes it comes from. In a cycle, the node
/// with the lowest number goes first.
fn layers(count: usize, arrows: &[(usize, usize, Certainty)]) -> Vec<usize> {
    let mut layer = vec![0; count];
    let mut next = vec![Vec::new(); count];
    let mut waits = vec![0; count];
    for &(from, to, _) in arrows {
        next[from].push(to);
        waits[to] += 1;
    }
    let mut done = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|&at| waits[at] == 0).rev().collect();
    let mut first = 0;
    loop {
        while let Some(at) = ready.pop() {
            if std::mem::replace(&mut done[at], true) {
                continue;
            }
            for &to in next[at].iter().filter(|&&to| !done[to]) {
                layer[to] = layer[to].max(layer[at] + 1);
                waits[to] -= 1;
                if waits[to] == 0 {
                    ready.push(to);
                }
            }
        }
        while first < count && done[first] {
            first += 1;
        }
        if first == count {
            return layer;
        }
        ready.push(first);
    }
}

/// Moves each source to the layer before its first user.
fn pull_sources(layer: &mut [usize], arrows: &[(usize, usize, Certainty)]) {
    let mut first = vec![usize::MAX; layer.len()];
    for &(from, to, _) in arrows {
        first[from] = first[from].min(layer[to]);
    }
    for &(_, to, _) in arrows {
        first[to] = 0;
    }
    for (layer, first) in layer.iter_mut().zip(first) {
        if *layer == 0 && (1..usize::MAX).contains(&first) {
            *layer = first - 1;
        }
    }
}

/// The row of each node within its layer, near the middle of its neighbours.
fn rows(layer: &[usize], arrows: &[(usize, usize, Certainty)]) -> Vec<usize> {
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut members = vec![Vec::new(); count];
    let mut row = vec![0; layer.len()];
    let mut near = vec![Vec::new(); layer.len()];
    for &(from, to, _) in arrows {
        near[from].push(to);
        near[to].push(from);
    }
    for (at, &layer) in layer.iter().enumerate() {
        row[at] = members[layer].len();
        members[layer].push(at);
    }
    for _ in 0..8 {
        for members in &mut members {
            members.sort_small_by_key(|&at| {
                let mut rows: Vec<usize> = near[at].iter().map(|&other| row[other]).collect();
                rows.sort_small();
                (
                    rows.get(rows.len() / 2).copied().unwrap_or(row[at]),
                    row[at],
                )
            });
            members
                .iter()
                .enumerate()
                .for_each(|(place, &at)| row[at] = place);
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_stands_after_its_origin_even_in_a_cycle() {
        let arrow = |from, to| (from, to, Certainty::Seen);
        assert_eq!(
            layers(4, &[arrow(0, 1), arrow(1, 2), arrow(0, 2), arrow(2, 3)]),
            [0, 1, 2, 3]
        );
        let ring = layers(3, &[arrow(0, 1), arrow(1, 2), arrow(2, 1)]);
        assert_eq!(ring, [0, 1, 2]);
        let mut pulled = vec![0, 1, 2, 0];
        pull_sources(&mut pulled, &[arrow(0, 1), arrow(1, 2), arrow(3, 2)]);
        assert_eq!(pulled, [0, 1, 2, 1]);
        let row = rows(&[0, 0, 1, 1], &[arrow(0, 3), arrow(1, 2)]);
        assert_eq!(
            row[0] < row[1],
            row[3] < row[2],
            "no arrows cross that need not"
        );
    }
}
