//! The notes below a tree: what it does not show, and the options that show it.

use backstory_query::answer::Node;

use super::Tree;
use crate::text::plan::Line;
use crate::text::words::counted;

impl Tree<'_, '_> {
    /// Prints once, below the tree, which parts it does not show, and how to see them.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.outline.lineage.cut {
            notes.push("(cut here: a larger --depth shows more)".to_owned());
        }
        let unfolded = || self.unfolded.iter().copied();
        if self.bare {
            notes.push("(--all also lists the files of the system)".to_owned());
        } else if unfolded().any(|node| {
            self.below(node)
                .iter()
                .any(|line| matches!(line, Line::Note(_)))
        }) {
            notes.push("(--all lists the files that were only counted)".to_owned());
        }
        let hidden: usize = unfolded().map(|node| self.steps(node).hidden).sum();
        if hidden > 0 {
            let links = counted(hidden, "more link", "more links");
            notes.push(format!(
                "(--possible shows {links}, of what could have happened but was not seen to)"
            ));
        }
        notes.extend(self.further());
        notes
    }

    /// The nodes behind those that stayed folded.
    fn further(&self) -> Option<String> {
        let lineage = self.outline.lineage;
        let mut told = vec![false; lineage.nodes.len()];
        for root in self.unused_versions() {
            told[root] = true;
        }
        for &node in &self.unfolded {
            told[node] = true;
            self.steps(node)
                .shown
                .iter()
                .for_each(|step| told[step.node] = true);
        }
        let (mut commands, mut files) = (0, 0);
        for node in self.outline.reached(lineage.roots, |node| self.steps(node)) {
            match &lineage.nodes[node] {
                _ if told[node] => {}
                Node::Activity { .. } => commands += 1,
                Node::Entity { .. } => files += 1,
            }
        }
        let kinds = [
            (commands, "more command", "more commands"),
            (files, "more file", "more files"),
        ];
        let counts = kinds.into_iter().filter(|(count, ..)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, one, many)| counted(count, one, many))
            .collect();
        let verb = if commands + files == 1 { "lies" } else { "lie" };
        (!counts.is_empty()).then(|| {
            format!(
                "… {} {verb} behind these: ask for one of them, or give --all or --json",
                counts.join(" and ")
            )
        })
    }
}
