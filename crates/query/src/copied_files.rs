//! Keeps the files apart that one program copied. `cp a b dir/` made `dir/a` of `a`, not of `b`.
//!
//! In: a lineage. Out: the same without the ways through a copying program on which nothing flowed.
//! Such a program reads all of its sources before it writes the last copy, so times alone lead from
//! each source to each copy.
//!
//! Invariant: a way is left out only if its source and its copy belong to other files, certainly.
//! They do so if the program made or read another file of the same name with the same content.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use backstory_files::Ident;
use backstory_graph::model::{Entity, EntityKind};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::answer::{Flow, Lineage, Node};
use crate::contents::known;
use crate::{Direction, Result};

/// Programs that copy each file as it is, under its own name.
const COPIERS: [&[u8]; 4] = [b"cp", b"gcp", b"install", b"mv"];

/// A file that a copying program read or made.
struct Copied {
    key: EntityKey,
    name: Vec<u8>,
    ident: Ident,
}

impl Copied {
    /// True if one can be the copy of the other, which has the same name.
    fn has_content_of(&self, store: &dyn Store, other: &Copied) -> Result<bool> {
        let digest = |file: &Copied| -> Result<_> {
            Ok(known(store, Some(&file.ident))?.and_then(|(digest, _)| digest))
        };
        Ok(match (digest(self)?, digest(other)?) {
            (Some(a), Some(b)) => a == b,
            _ => self.ident.size == other.ident.size,
        })
    }
}

/// The files that a copying program read, or those that it made.
#[derive(Default)]
struct CopiedFiles {
    files: HashMap<EntityKey, Copied>,
    by_name: HashMap<Vec<u8>, Vec<EntityKey>>,
}

impl CopiedFiles {
    fn add(&mut self, file: Copied) {
        self.by_name
            .entry(file.name.clone())
            .or_default()
            .push(file.key);
        self.files.insert(file.key, file);
    }

    /// Those of the same name and content as a file.
    fn partners(&self, store: &dyn Store, file: &Copied) -> Result<Vec<EntityKey>> {
        let mut found = Vec::new();
        for key in self.by_name.get(&file.name).into_iter().flatten() {
            if self.files[key].has_content_of(store, file)? {
                found.push(*key);
            }
        }
        Ok(found)
    }
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The links of an activity in a lineage.
#[derive(Default)]
struct Links {
    used: Vec<usize>,
    generated: Vec<usize>,
}

/// Takes the ways out of a lineage on which a copying program copied other files.
///
/// # Errors
///
/// If the store fails.
pub fn keep_copies_apart(
    store: &dyn Store,
    mut lineage: Lineage,
    direction: Direction,
) -> Result<Lineage> {
    let mut runs = EntitiesOfRuns::default();
    // A copy of a copy is still there until the way from it is taken out.
    while let Some(dropped) = unrelated_links(store, &mut runs, &lineage)? {
        lineage = without(lineage, &dropped, direction);
    }
    Ok(lineage)
}

/// For each link whether it is such a way. `None` if no link is.
fn unrelated_links(
    store: &dyn Store,
    runs: &mut EntitiesOfRuns,
    lineage: &Lineage,
) -> Result<Option<Vec<bool>>> {
    let mut dropped = vec![false; lineage.links.len()];
    for (activity, links) in copying(lineage) {
        let Node::Activity { id, .. } = &lineage.nodes[activity] else {
            continue;
        };
        let Some((sources, copies)) = copied(store, runs, ActivityKey(*id))? else {
            continue;
        };
        let ends = |links: &[usize], is_source: bool| -> Vec<(usize, EntityKey)> {
            let end = |at: usize| {
                let link = &lineage.links[at];
                if is_source { link.from } else { link.to }
            };
            let ends = links.iter().filter_map(|&at| match lineage.nodes[end(at)] {
                Node::Entity { id, .. } => Some((at, EntityKey(id))),
                Node::Activity { .. } => None,
            });
            ends.collect()
        };
        let used = ends(&links.used, true);
        let generated = ends(&links.generated, false);
        let both = [
            (&used, &sources, &generated, &copies),
            (&generated, &copies, &used, &sources),
        ];
        for (these, all_these, those, all_those) in both {
            for at in unrelated(store, (these, all_these), (those, all_those))? {
                dropped[at] = true;
            }
        }
    }
    Ok(dropped.contains(&true).then_some(dropped))
}

/// The links of the copying programs of a lineage.
fn copying(lineage: &Lineage) -> HashMap<usize, Links> {
    let is_copier = |node: usize| match &lineage.nodes[node] {
        Node::Activity { exec_path, .. } => exec_path
            .as_deref()
            .is_some_and(|path| COPIERS.contains(&base_name(path))),
        Node::Entity { .. } => false,
    };
    let mut found: HashMap<usize, Links> = HashMap::new();
    for (at, link) in lineage.links.iter().enumerate() {
        match link.flow {
            Flow::Used(_) if is_copier(link.to) => {
                found.entry(link.to).or_default().used.push(at);
            }
            Flow::Generated(_) if is_copier(link.from) => {
                found.entry(link.from).or_default().generated.push(at);
            }
            _ => {}
        }
    }
    found.retain(|_, links| !links.used.is_empty() && !links.generated.is_empty());
    found
}

/// The entities of each run, read once.
type EntitiesOfRuns = HashMap<RunKey, Vec<Entity>>;

/// The files that a program read, and those that it made. `None` if it made one thing at most: then
/// nothing is to be kept apart.
fn copied(
    store: &dyn Store,
    runs: &mut EntitiesOfRuns,
    activity: ActivityKey,
) -> Result<Option<(CopiedFiles, CopiedFiles)>> {
    let mut uses: HashMap<EntityKey, [bool; 2]> = HashMap::new();
    for edge in store.stream(activity)?.edges {
        let key = EntityKey::new(activity.run(), edge.entity);
        uses.entry(key).or_default()[usize::from(edge.relation.is_use())] = true;
    }
    if uses.values().filter(|[is_made, _]| *is_made).count() < 2 {
        return Ok(None);
    }
    let entities = match runs.entry(activity.run()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(free) => free.insert(store.entities(activity.run())?),
    };
    let (mut sources, mut copies) = (CopiedFiles::default(), CopiedFiles::default());
    for entity in entities {
        let key = EntityKey::new(activity.run(), entity.id);
        let (Some([is_copy, is_source]), Some(ident)) = (uses.get(&key), entity.ident) else {
            continue;
        };
        if entity.kind != EntityKind::File {
            continue;
        }
        let file = || Copied {
            key,
            name: base_name(&entity.path).to_vec(),
            ident,
        };
        if *is_source {
            sources.add(file());
        }
        if *is_copy {
            copies.add(file());
        }
    }
    Ok(Some((sources, copies)))
}

/// The links to files of `these` that have nothing to do with the linked files `those`. Each of
/// them belongs to another file that the program read or made.
fn unrelated(
    store: &dyn Store,
    (these, all_these): (&[(usize, EntityKey)], &CopiedFiles),
    (those, all_those): (&[(usize, EntityKey)], &CopiedFiles),
) -> Result<Vec<usize>> {
    let linked: HashSet<EntityKey> = those.iter().map(|(_, key)| *key).collect();
    let mut found = Vec::new();
    for (at, key) in these {
        let Some(this) = all_these.files.get(key) else {
            continue;
        };
        let partners = all_those.partners(store, this)?;
        if !partners.is_empty() && !partners.iter().any(|key| linked.contains(key)) {
            found.push(*at);
        }
    }
    Ok(found)
}

/// The lineage without these links, and without the nodes that nothing leads to any more.
fn without(lineage: Lineage, dropped: &[bool], direction: Direction) -> Lineage {
    let kept = |at: &usize| !dropped[*at];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); lineage.nodes.len()];
    for at in (0..lineage.links.len()).filter(kept) {
        let link = &lineage.links[at];
        match direction {
            Direction::Back => next[link.to].push(link.from),
            Direction::Forth => next[link.from].push(link.to),
        }
    }
    let mut is_reached = vec![false; lineage.nodes.len()];
    let mut waiting: Vec<usize> = (0..lineage.roots).collect();
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut is_reached[node], true) {
            waiting.extend(&next[node]);
        }
    }
    let mut numbers = vec![usize::MAX; lineage.nodes.len()];
    let kept = (0..lineage.nodes.len()).filter(|&node| is_reached[node]);
    for (number, node) in kept.enumerate() {
        numbers[node] = number;
    }
    let links = lineage.links.into_iter().enumerate();
    let links =
        links.filter(|(at, link)| !dropped[*at] && is_reached[link.from] && is_reached[link.to]);
    let links = links
        .map(|(_, mut link)| {
            (link.from, link.to) = (numbers[link.from], numbers[link.to]);
            link
        })
        .collect();
    let mut reached = is_reached.iter();
    let mut nodes = lineage.nodes;
    nodes.retain(|_| *reached.next().unwrap_or(&true));
    let mut reached = is_reached.iter();
    let mut reach = lineage.reach;
    reach.retain(|_| *reached.next().unwrap_or(&true));
    Lineage {
        nodes,
        roots: lineage.roots,
        links,
        reach,
        cut: lineage.cut,
    }
}
