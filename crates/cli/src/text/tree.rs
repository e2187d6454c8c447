//! A lineage as an indented tree: file, the command that made it, what that command read, and so on.
//!
//! Each node is unfolded once; later it is named and marked. System files that no recorded command made are counted, not
//! listed, unless asked for. No recursion: a lineage may be as deep as a store is old.

use std::collections::HashSet;
use std::io::{self, Write};

use backstory_graph::model::{Certainty, EntityKind};
use backstory_query::answer::{Flow, Lineage, Node};

use super::paths::{Groups, is_system, shown};
use super::shell::Call;
use super::style::{Role, Style};
use super::when;
use super::words::{Direction, step};

/// Deeper than this no terminal is wide; `--json` has no such bound.
const DEEPEST: usize = 64;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Drawing<'a> {
    /// Towards causes or effects.
    pub direction: Direction,
    /// List system files, too.
    pub all: bool,
    /// The user's directory: commands that ran there need no `cd`.
    pub here: &'a [u8],
    /// Colours.
    pub style: Style,
}

/// Writes the tree of each root.
pub fn draw(lineage: &Lineage, drawing: Drawing, out: &mut impl Write) -> io::Result<()> {
    let mut tree = Tree {
        outline: Outline::new(lineage, drawing.direction),
        drawing,
        unfolded: HashSet::new(),
    };
    for root in 0..lineage.roots {
        tree.root(root, out)?;
    }
    if lineage.cut {
        writeln!(
            out,
            "{}",
            drawing.style.paint(
                Role::Dim,
                "… the answer was cut here: a larger --depth shows more"
            )
        )?;
    }
    Ok(())
}

/// A lineage as one reads it: for each node, where each step leads and by which links.
pub struct Outline<'a> {
    /// The lineage.
    pub lineage: &'a Lineage,
    direction: Direction,
    /// Link indexes by the node they start from in reading direction, in order of time.
    steps: Vec<Vec<usize>>,
}

/// One step: the links that lead to one node.
pub struct Step {
    /// Where it leads.
    pub node: usize,
    /// What precedes its name: `read`, `ran and read`.
    pub words: String,
    /// The strongest of the links.
    pub certainty: Certainty,
}

impl<'a> Outline<'a> {
    /// Prepares a lineage for reading.
    pub fn new(lineage: &'a Lineage, direction: Direction) -> Outline<'a> {
        let mut steps = vec![Vec::new(); lineage.nodes.len()];
        for (index, link) in lineage.links.iter().enumerate() {
            let start = if direction == Direction::Of {
                link.to
            } else {
                link.from
            };
            steps[start].push(index);
        }
        for links in &mut steps {
            links.sort_by_key(|&link| lineage.links[link].interval.start);
        }
        Outline {
            lineage,
            direction,
            steps,
        }
    }

    /// Steps from a node, seeing through what is no news: the same version in another run, a fork that only leads to an exec.
    pub fn steps(&self, node: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut seen = HashSet::from([node]);
        let mut through = vec![node];
        while let Some(at) = through.pop() {
            for &index in &self.steps[at] {
                let link = &self.lineage.links[index];
                let other = if self.direction == Direction::Of {
                    link.from
                } else {
                    link.to
                };
                if self.is_transparent(&link.flow, other) {
                    if seen.insert(other) {
                        through.push(other);
                    }
                    continue;
                }
                let words = step(&link.flow, self.direction);
                match steps.iter_mut().find(|step| step.node == other) {
                    Some(step) => {
                        step.certainty = step.certainty.max(link.certainty);
                        if !step.words.contains(words) {
                            step.words = format!("{} and {words}", step.words);
                        }
                    }
                    None => steps.push(Step {
                        node: other,
                        words: words.to_owned(),
                        certainty: link.certainty,
                    }),
                }
            }
        }
        steps
    }

    /// True if nothing leads on from the node.
    pub fn is_leaf(&self, node: usize) -> bool {
        self.steps[node].is_empty()
    }

    /// True if the node is a system file that nothing recorded made (or used): one of the many that are better counted.
    pub fn is_system_leaf(&self, node: usize) -> bool {
        match &self.lineage.nodes[node] {
            Node::Entity { path, .. } => is_system(path) && self.is_leaf(node),
            Node::Activity { .. } => false,
        }
    }

    fn is_transparent(&self, flow: &Flow, node: usize) -> bool {
        let only_informed = |node: usize| {
            self.steps[node]
                .iter()
                .all(|&link| matches!(self.lineage.links[link].flow, Flow::Informed(_)))
        };
        match (flow, &self.lineage.nodes[node]) {
            (Flow::Same, _) => true,
            (Flow::Informed(_), Node::Activity { epoch: 0, .. }) => {
                only_informed(node) && !self.is_leaf(node)
            }
            _ => false,
        }
    }
}

/// A node on the way, with what is still to be drawn below it.
struct Level {
    prefix: String,
    lines: std::vec::IntoIter<Line>,
}

/// A line below a node.
enum Line {
    Step(Step),
    Note(String),
}

struct Tree<'a, 'b> {
    outline: Outline<'a>,
    drawing: Drawing<'b>,
    unfolded: HashSet<usize>,
}

impl Tree<'_, '_> {
    fn root(&mut self, root: usize, out: &mut impl Write) -> io::Result<()> {
        let (name, note) = self.name(root);
        let made = match &self.outline.lineage.nodes[root] {
            Node::Entity {
                run, version: 1.., ..
            } => format!("  [run {run}]"),
            _ => String::new(),
        };
        let style = self.drawing.style;
        writeln!(
            out,
            "{}{note}{}",
            style.paint(Role::Subject, &name),
            style.paint(Role::Dim, &made)
        )?;
        self.unfolded.insert(root);
        let mut first = self.below(root);
        if first.is_empty() {
            let nothing = match self.drawing.direction {
                Direction::Of => "no recorded command made it",
                Direction::Uses => "no recorded command used it",
            };
            first.push(Line::Note(nothing.to_owned()));
        }
        let mut levels = vec![Level {
            prefix: String::new(),
            lines: first.into_iter(),
        }];
        while let Some(level) = levels.last_mut() {
            let Some(line) = level.lines.next() else {
                levels.pop();
                continue;
            };
            let last = level.lines.len() == 0;
            let (branch, indent) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let lead = self
                .drawing
                .style
                .paint(Role::Dim, &format!("{}{branch}", level.prefix));
            let prefix = format!("{}{indent}", level.prefix);
            match line {
                Line::Note(note) => writeln!(out, "{lead}{}", self.drawing.style.paint(Role::Dim, &note))?,
                Line::Step(step) => {
                    let lines = self.step(&step, levels.len(), &lead, out)?;
                    levels.push(Level {
                        prefix,
                        lines: lines.into_iter(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes one line and gives what stands below it.
    fn step(&mut self, step: &Step, depth: usize, lead: &str, out: &mut impl Write) -> io::Result<Vec<Line>> {
        let style = self.drawing.style;
        let (name, note) = self.name(step.node);
        let maybe = if step.certainty == Certainty::Possible {
            "possibly "
        } else {
            ""
        };
        let leaf = self.outline.is_leaf(step.node);
        let role = match &self.outline.lineage.nodes[step.node] {
            Node::Activity { .. } => Role::Command,
            Node::Entity { .. } => Role::Subject,
        };
        let fold = match (leaf, self.unfolded.insert(step.node)) {
            (false, false) => style.paint(Role::Dim, "  (shown above)"),
            _ => String::new(),
        };
        writeln!(
            out,
            "{lead}{maybe}{} {}{note}{fold}",
            step.words,
            style.paint(role, &name)
        )?;
        Ok(match (fold.is_empty() && !leaf, depth < DEEPEST) {
            (true, true) => self.below(step.node),
            (true, false) => vec![Line::Note("… goes on: use --depth or --json".to_owned())],
            (false, _) => Vec::new(),
        })
    }

    /// The lines below a node: its steps, then what was only counted.
    fn below(&self, node: usize) -> Vec<Line> {
        let mut groups = Groups::default();
        let mut lines = Vec::new();
        for step in self.outline.steps(node) {
            match &self.outline.lineage.nodes[step.node] {
                Node::Entity { path, .. } if !self.drawing.all && self.outline.is_system_leaf(step.node) => {
                    groups.add(path)
                }
                _ => lines.push(Line::Step(step)),
            }
        }
        let groups = groups.lines();
        if !groups.is_empty() {
            lines.push(Line::Note(format!(
                "… and {} (--all lists them)",
                groups.join(", ")
            )));
        }
        lines
    }

    /// How a node is called, and what is said of it beside.
    fn name(&self, node: usize) -> (String, String) {
        let style = self.drawing.style;
        match &self.outline.lineage.nodes[node] {
            Node::Entity { path, kind, .. } => {
                let kind = match kind {
                    EntityKind::Directory => " (directory)",
                    EntityKind::Symlink => " (symbolic link)",
                    EntityKind::Missing => " (not there)",
                    _ => "",
                };
                (shown(path), style.paint(Role::Dim, kind))
            }
            Node::Activity {
                run,
                exec_path,
                argv,
                cwd,
                interval,
                env_set,
                env_unset,
                ..
            } => {
                let call = Call {
                    exec_path: exec_path.as_deref(),
                    argv,
                    cwd,
                    env_set,
                    env_unset,
                };
                let beside = format!("  [{run}, {}]", when::moment(interval.start));
                (call.line(self.drawing.here), style.paint(Role::Dim, &beside))
            }
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
pub(crate) mod tests;
