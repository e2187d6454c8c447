//! A graph in the making. In: nodes, links, and which files are noise. Out: the graph as it is
//! shown, with counted nodes instead of noise and of large groups of files.
//!
//! - The noise around each command or process is one node.
//! - More than [`MANY`] files of the user's that the same commands made and used are one node.
//!
//! Invariant: each node of the draft is shown, or a member of a counted node.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet};

use backstory_account::pattern_text;
use backstory_graph::model::Certainty;
use backstory_packages::{PackageId, PackageTally};
use backstory_vocabulary::Word;
use backstory_workflow::ownership::Ownership;

use super::graph_rows::{FoldNode, GraphLink, GraphNode};
use crate::api::version_view::PackageRow;

/// As many files alike are shown one by one.
const MANY: usize = 8;

/// The most packages of a counted node.
const PACKAGES: usize = 20;

/// A graph in the making.
#[derive(Default)]
pub struct GraphDraft {
    /// The nodes: files, and the commands or processes that used them.
    pub nodes: Vec<GraphNode>,
    /// Whether each node is noise.
    pub noise: Vec<bool>,
    /// The links, by the indexes of nodes.
    pub links: Vec<(usize, usize, GraphLink)>,
    /// The subjects.
    pub roots: BTreeSet<usize>,
}

/// A counted node with its members.
pub struct Fold {
    /// The node.
    pub node: FoldNode,
    /// The indexes of its members.
    pub members: BTreeSet<usize>,
    /// The links of the counted node.
    links: Vec<GraphLink>,
}

impl GraphDraft {
    /// Adds a node.
    pub fn push(&mut self, node: GraphNode, noise: bool) -> usize {
        self.nodes.push(node);
        self.noise.push(noise);
        self.nodes.len() - 1
    }

    /// The counted nodes.
    pub fn folds(&self, owners: &mut Ownership) -> Vec<Fold> {
        let mut folds: BTreeMap<String, Fold> = BTreeMap::new();
        self.fold_noise(&mut folds);
        self.fold_groups(&mut folds);
        let mut folds: Vec<Fold> = folds.into_values().collect();
        for fold in &mut folds {
            self.describe(fold, owners);
        }
        folds
    }

    /// The graph without the members of counted nodes, and with these nodes instead.
    pub fn shown(self, folds: Vec<Fold>) -> (Vec<GraphNode>, Vec<GraphLink>) {
        let hidden: BTreeSet<usize> = folds
            .iter()
            .flat_map(|fold| &fold.members)
            .copied()
            .into_tree();
        let visible = |at: &usize| !hidden.contains(at);
        let links = self.links.into_iter();
        let mut links: Vec<GraphLink> = links
            .filter(|(from, to, _)| visible(from) && visible(to))
            .map(|(_, _, link)| link)
            .collect();
        let nodes = self.nodes.into_iter().enumerate();
        let mut nodes: Vec<GraphNode> = nodes
            .filter(|(at, _)| visible(at))
            .map(|(_, node)| node)
            .collect();
        for fold in folds {
            nodes.push(GraphNode::Fold(fold.node));
            links.extend(fold.links);
        }
        (nodes, links)
    }

    fn is_file(&self, at: usize) -> bool {
        matches!(self.nodes[at], GraphNode::File(_))
    }

    /// Files with links to commands or processes only. Others join runs, and stay.
    fn foldable(&self) -> BTreeSet<usize> {
        let mut files: BTreeSet<usize> = (0..self.nodes.len())
            .filter(|&at| self.is_file(at) && !self.roots.contains(&at))
            .into_tree();
        for (from, to, _) in &self.links {
            if self.is_file(*from) && self.is_file(*to) {
                files.remove(from);
                files.remove(to);
            }
        }
        files
    }

    fn fold_noise(&self, folds: &mut BTreeMap<String, Fold>) {
        let foldable = self.foldable();
        for (from, to, link) in &self.links {
            let ends = [(*from, *to), (*to, *from)];
            let noise = |(file, _): &(usize, usize)| self.noise[*file] && foldable.contains(file);
            let Some((file, actor)) = ends.into_iter().find(noise) else {
                continue;
            };
            let of = self.nodes[actor].id().to_owned();
            let made = file == *to;
            let id = format!("f{of}-{}", if made { "made" } else { "used" });
            let (a, b) = match made {
                true => (of.clone(), id.clone()),
                false => (id.clone(), of.clone()),
            };
            let fold = folds.entry(id.clone()).or_insert_with(|| Fold {
                node: new_node(id, Some(of), "system"),
                members: BTreeSet::new(),
                links: Vec::new(),
            });
            fold.members.insert(file);
            fold.join(link, a, b);
        }
    }

    fn fold_groups(&self, folds: &mut BTreeMap<String, Fold>) {
        let mut ends: BTreeMap<usize, BTreeSet<(bool, usize)>> = BTreeMap::new();
        for (from, to, _) in &self.links {
            ends.entry(*from).or_default().insert((true, *to));
            ends.entry(*to).or_default().insert((false, *from));
        }
        let mut groups: BTreeMap<BTreeSet<(bool, usize)>, BTreeSet<usize>> = BTreeMap::new();
        for file in self.foldable() {
            if let Some(ends) = ends.remove(&file).filter(|_| !self.noise[file]) {
                groups.entry(ends).or_default().insert(file);
            }
        }
        groups.retain(|_, files| files.len() > MANY);
        let mut of_file: BTreeMap<usize, String> = BTreeMap::new();
        for files in groups.into_values() {
            let first = files.first().map_or("", |&at| self.nodes[at].id());
            let id = format!("f{first}-alike");
            of_file.extend(files.iter().map(|&file| (file, id.clone())));
            let fold = Fold {
                node: new_node(id.clone(), None, "files"),
                members: files,
                links: Vec::new(),
            };
            folds.insert(id, fold);
        }
        for (from, to, link) in &self.links {
            let name = |at: usize| self.nodes[at].id().to_owned();
            if let Some(id) = of_file.get(from)
                && let Some(fold) = folds.get_mut(id)
            {
                fold.join(link, id.clone(), name(*to));
            } else if let Some(id) = of_file.get(to)
                && let Some(fold) = folds.get_mut(id)
            {
                fold.join(link, name(*from), id.clone());
            }
        }
    }

    /// Counts the members, and says what they are.
    fn describe(&self, fold: &mut Fold, owners: &mut Ownership) {
        let paths = fold.members.iter().filter_map(|&at| match &self.nodes[at] {
            GraphNode::File(file) => Some(&*file.path.0),
            _ => None,
        });
        let paths: Vec<&[u8]> = paths.collect();
        fold.node.count = paths.len();
        if fold.node.what == "files" {
            fold.node.label = pattern_text(&paths);
            return;
        }
        let tally = owners.tally(paths.iter().copied());
        fold.node.label = label(paths.len(), &tally);
        let counts = tally.packages.iter().take(PACKAGES);
        fold.node.packages = counts
            .map(|count| package_row(&count.package, count.files))
            .collect();
    }
}

impl Fold {
    /// Adds the link of a member to the link of the counted node.
    fn join(&mut self, link: &GraphLink, from: String, to: String) {
        let known = self
            .links
            .iter_mut()
            .find(|known| known.from == from && known.to == to);
        match known {
            Some(known) => {
                known.start = known.start.min(link.start);
                known.end = known.end.max(link.end);
                if known.bytes != link.bytes {
                    known.bytes = None;
                }
                if link.certainty == Certainty::Seen.word() {
                    known.certainty = link.certainty;
                }
            }
            None => self.links.push(GraphLink {
                from,
                to,
                relation: None,
                ..link.clone()
            }),
        }
    }
}

fn new_node(id: String, of: Option<String>, what: &'static str) -> FoldNode {
    FoldNode {
        id,
        of,
        what,
        count: 0,
        label: String::new(),
        packages: Vec::new(),
    }
}

/// `214 system files: gcc-12, libc6, and 3 more packages`
fn label(files: usize, tally: &PackageTally) -> String {
    let noun = if files == 1 { "file" } else { "files" };
    let names: Vec<&str> = tally
        .packages
        .iter()
        .take(2)
        .map(|count| count.package.name.as_str())
        .collect();
    let more = tally.packages.len().saturating_sub(names.len());
    match (names.is_empty(), more) {
        (true, _) => format!("{files} system {noun}"),
        (_, 0) => format!("{files} system {noun}: {}", names.join(", ")),
        (_, more) => format!(
            "{files} system {noun}: {}, and {more} more",
            names.join(", ")
        ),
    }
}

/// A package in an answer.
pub fn package_row(package: &PackageId, files: usize) -> PackageRow {
    PackageRow {
        provider: package.provider.clone(),
        name: package.name.clone(),
        version: package.version.clone(),
        files,
    }
}
