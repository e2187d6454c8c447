//! Draws a lineage as an indented tree: the file, the command that wrote it, the inputs of that
//! command, and so on.
//!
//! Each node is unfolded once, where it is nearest to the root. Elsewhere it is named and marked.
//! Nodes that do not fit a page stay folded. Files that no recorded command wrote are counted by
//! directory if they are many, unless `all` is set.
//!
//! Invariant: there is no recursion, because a lineage can be as deep as the store is old.

mod left_out;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io::{self, Write};

use backstory_graph::model::{Certainty, EntityKind};
use backstory_query::answer::{Lineage, Node};

use super::branches::{Branch, Branches};
use super::outline::Outline;
use super::paths::{Groups, is_system, shown};
use super::plan::{FEW_LINES, Line, PAGE, Plan, first_few};
use super::shell::{Call, SHORT};
use super::style::{Role, Style};
use super::when;
use super::words::{Direction, counted};

/// The deepest indentation, which is limited by the width of terminals. `--json` has no such limit.
const DEEPEST: usize = 64;

/// The number of inputs outside the directory of the command that are listed one by one, if no
/// recorded command wrote them.
const FEW: usize = 6;

/// The number of characters of a command line that are printed.
const LONG: usize = 400;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Drawing<'a> {
    /// The direction: towards causes or effects.
    pub direction: Direction,
    /// Print everything except possible links, however long it gets.
    pub all: bool,
    /// Also print possible links.
    pub possible: bool,
    /// The current directory: commands that ran there need no `cd`.
    pub here: &'a [u8],
    /// Colours.
    pub style: Style,
}

/// Writes the tree of each root.
pub fn draw(lineage: &Lineage, drawing: Drawing, out: &mut impl Write) -> io::Result<()> {
    let outline = Outline::new(lineage, drawing.direction, drawing.possible);
    let steps = vec![OnceCell::new(); lineage.nodes.len()];
    let bare = !drawing.all && outline.has_tables();
    let mut tree = Tree {
        outline,
        steps,
        drawing,
        plan: Plan::default(),
        most: usize::MAX,
        bare,
        unfolded: HashSet::new(),
    };
    let unused = tree.unused_versions();
    for root in (0..lineage.roots).filter(|root| !unused.contains(root)) {
        tree.plan(root);
        tree.root(root, out)?;
    }
    for note in tree.left_out() {
        writeln!(out, "{}", drawing.style.paint(Role::Dim, &note))?;
    }
    Ok(())
}

/// A node whose lines are being drawn, with those that are still to be drawn below it.
struct Level<'l> {
    node: usize,
    /// The run of the last command above that named one.
    run: Option<&'l str>,
    prefix: String,
    lines: std::vec::IntoIter<Line>,
}

struct Tree<'l, 'd> {
    outline: Outline<'l>,
    steps: Vec<OnceCell<Branches>>,
    drawing: Drawing<'d>,
    /// The plan: which nodes are unfolded, and where.
    plan: Plan,
    /// The number of branches that are printed below one node.
    most: usize,
    /// System files are not even counted: between tables, they hide the clients.
    bare: bool,
    unfolded: HashSet<usize>,
}

impl<'l> Tree<'l, '_> {
    fn steps(&self, node: usize) -> &Branches {
        self.steps[node].get_or_init(|| self.outline.steps(node))
    }

    /// The roots that nothing used, if another version of the same thing was used.
    fn unused_versions(&self) -> HashSet<usize> {
        let roots = 0..self.outline.lineage.roots;
        if self.drawing.direction == Direction::Of || roots.len() < 2 {
            return HashSet::new();
        }
        let path = |root: &usize| match &self.outline.lineage.nodes[*root] {
            Node::Entity { path, .. } => Some(path),
            Node::Activity { .. } => None,
        };
        let (unused, used): (Vec<usize>, Vec<usize>) =
            roots.partition(|root| self.below(*root).is_empty());
        let used: HashSet<_> = used.iter().filter_map(path).collect();
        let is_known = |root: &usize| path(root).is_some_and(|path| used.contains(path));
        unused.into_iter().filter(is_known).collect()
    }

    /// Plans the tree of a root. If the whole tree does not fit, the nearest nodes are unfolded
    /// with few lines each.
    fn plan(&mut self, root: usize) {
        let page = match self.drawing.all {
            true => usize::MAX,
            false => (PAGE / self.outline.lineage.roots).max(2 * FEW_LINES),
        };
        self.most = usize::MAX;
        self.plan = Plan::nearest(root, page, |node| self.below(node));
        if !self.plan.is_whole() {
            self.most = FEW_LINES;
            self.plan = Plan::nearest(root, page, |node| self.below(node));
        }
    }

    fn root(&mut self, root: usize, out: &mut impl Write) -> io::Result<()> {
        let style = self.drawing.style;
        let (name, note) = self.name(root, None);
        writeln!(out, "{}{note}", style.paint(Role::Subject, &name))?;
        self.unfolded.insert(root);
        let mut lines = self.below(root);
        if lines.is_empty() {
            let nothing = match self.drawing.direction {
                Direction::Of => "no recorded command made it",
                Direction::Uses => "no recorded command used it",
            };
            lines.push(Line::Note(nothing.to_owned()));
        }
        let mut levels = vec![Level {
            node: root,
            run: None,
            prefix: String::new(),
            lines: lines.into_iter(),
        }];
        while let Some(level) = levels.last_mut() {
            let Some(line) = level.lines.next() else {
                levels.pop();
                continue;
            };
            let (branch, indent) = if level.lines.len() == 0 {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let lead = style.paint(Role::Dim, &format!("{}{branch}", level.prefix));
            let (parent, run, prefix) =
                (level.node, level.run, format!("{}{indent}", level.prefix));
            match line {
                Line::Note(note) => writeln!(out, "{lead}{}", style.paint(Role::Dim, &note))?,
                Line::Branch(step) => {
                    let home = self.plan.is_home(step.node, parent);
                    let mut lines = self.step(&step, run, home, &lead, out)?;
                    if levels.len() >= DEEPEST && !lines.is_empty() {
                        lines = vec![Line::Note("… goes on: use --depth or --json".to_owned())];
                    }
                    let run = self.run(step.node).or(run);
                    levels.push(Level {
                        node: step.node,
                        run,
                        prefix,
                        lines: lines.into_iter(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes one line and returns the lines below it.
    fn step(
        &mut self,
        step: &Branch,
        run: Option<&str>,
        home: bool,
        lead: &str,
        out: &mut impl Write,
    ) -> io::Result<Vec<Line>> {
        let style = self.drawing.style;
        let (name, note) = self.name(step.node, run);
        let maybe = if step.certainty == Certainty::Possible {
            "possibly "
        } else {
            ""
        };
        let role = match &self.outline.lineage.nodes[step.node] {
            Node::Activity { .. } => Role::Command,
            Node::Entity { .. } => Role::Subject,
        };
        let more = !self.outline.is_leaf(step.node) && !self.below(step.node).is_empty();
        let elsewhere = match (more, home) {
            (true, _) if self.unfolded.contains(&step.node) => "  (shown above)",
            (true, _) if !self.plan.unfolds(step.node) => "  …",
            (true, false) => "  (shown below)",
            _ => "",
        };
        let words = format!("{maybe}{}", step.words);
        writeln!(
            out,
            "{lead}{words} {}{note}{}",
            style.paint(role, &name),
            style.paint(Role::Dim, elsewhere)
        )?;
        if !elsewhere.is_empty() {
            return Ok(Vec::new());
        }
        // Counted even if no line is printed below the node.
        self.unfolded.insert(step.node);
        Ok(self.below(step.node))
    }

    /// The lines below a node: its branches, then the counted files.
    fn below(&self, node: usize) -> Vec<Line> {
        let steps = self.steps(node);
        let mut groups = Groups::default();
        let far = steps
            .shown
            .iter()
            .filter(|step| self.is_far(node, step.node))
            .count();
        let mut lines = Vec::new();
        let mut listed = Vec::new();
        for step in &steps.shown {
            match &self.outline.lineage.nodes[step.node] {
                Node::Entity { path, .. } if self.is_counted(node, step.node, far) => {
                    if !(self.bare && is_system(path)) {
                        groups.add(path);
                    }
                }
                _ => listed.push(step.clone()),
            }
        }
        let (first, rest) = first_few(&listed, self.most);
        lines.extend(first.into_iter().map(Line::Branch));
        let left = listed.len() - lines.len() - rest.len();
        let mut commands = left;
        for step in rest {
            match &self.outline.lineage.nodes[step.node] {
                Node::Entity { path, .. } => groups.add(path),
                Node::Activity { .. } => commands += 1,
            }
        }
        if commands > 0 {
            let commands = counted(commands, "more command", "more commands");
            lines.push(Line::Note(format!("… and {commands}")));
        }
        if !groups.is_empty() {
            lines.push(Line::Note(format!("… and {}", groups.text())));
        }
        lines
    }

    /// True if the file of a branch is counted rather than listed.
    fn is_counted(&self, node: usize, file: usize, far: usize) -> bool {
        let system = self.outline.is_system_leaf(file);
        !self.drawing.all && (system || far > FEW && self.is_far(node, file))
    }

    /// True if no recorded command wrote (or used) the file, and the file is neither a system file
    /// nor below the directory of the command.
    fn is_far(&self, node: usize, file: usize) -> bool {
        match (
            &self.outline.lineage.nodes[node],
            &self.outline.lineage.nodes[file],
        ) {
            (Node::Activity { cwd, .. }, Node::Entity { path, .. }) => {
                let near = path.starts_with(cwd)
                    && (cwd.ends_with(b"/") || path.get(cwd.len()) == Some(&b'/'));
                self.outline.is_leaf(file) && !is_system(path) && !near
            }
            _ => false,
        }
    }

    /// The run of a command.
    fn run(&self, node: usize) -> Option<&'l str> {
        match &self.outline.lineage.nodes[node] {
            Node::Activity { run, .. } => Some(run),
            Node::Entity { .. } => None,
        }
    }

    /// The name of a node, and the notes beside it. The run is named where it differs from the run
    /// of the command above.
    fn name(&self, node: usize, above: Option<&str>) -> (String, String) {
        let (name, beside) = match &self.outline.lineage.nodes[self.outline.given(node)] {
            Node::Entity { path, kind, .. } => {
                let kind = match kind {
                    EntityKind::Directory => " (directory)",
                    EntityKind::Symlink => " (symbolic link)",
                    EntityKind::Missing => " (not there)",
                    _ => "",
                };
                (shown(path), kind.to_owned())
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
                let most = if self.drawing.all { usize::MAX } else { SHORT };
                let (line, left_out) = call.line(self.drawing.here, most);
                let (line, cut) = if self.drawing.all {
                    (line, 0)
                } else {
                    shortened(line)
                };
                let mut beside = String::new();
                if cut > 0 {
                    beside.push_str(&format!("  [{cut} more characters]"));
                }
                if left_out > 0 {
                    beside.push_str(&format!("  [{left_out} variables differ]"));
                }
                if above != Some(run.as_str()) {
                    beside.push_str(&format!("  [run {run}, {}]", when::moment(interval.start)));
                }
                (line, beside)
            }
        };
        (name, self.drawing.style.paint(Role::Dim, &beside))
    }
}

/// Shortens a command line that would hide the tree, and says by how many characters.
fn shortened(line: String) -> (String, usize) {
    match line.char_indices().nth(LONG) {
        Some((at, _)) => (format!("{}…", &line[..at]), line[at..].chars().count()),
        None => (line, 0),
    }
}

#[cfg(test)]
pub(crate) mod tests;
