//! Finds what a step does that its user may not expect: it writes outside the project, removes
//! files, uses the network, or takes privilege.
//!
//! In: a planned step, and what its activities did when they were recorded. Out: [`Hazard`]s. A
//! step may do other things than before; a changed script is not read.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_currency::PlannedStep;
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Edge, Entity, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::paths::{base_name, is_below_kernel, is_cache, is_record, to_path};
use backstory_workflow::tools::knowledge;

use crate::Result;

/// The outputs of a step that were not there when it was recorded, if one of its programs would add
/// to them: `ar q` adds to an archive. Empty for a step that is a run's whole command, such as a
/// `make` that looks at its former results.
///
/// # Errors
///
/// If the store fails.
pub fn outputs_made_anew(store: &dyn Store, step: &PlannedStep) -> Result<Vec<Bytes>> {
    let mut adds = false;
    for activity in step.members.iter().filter(|_| !step.is_whole_run) {
        let activity = store.activity(*activity)?;
        adds |= activity
            .argv
            .first()
            .is_some_and(|name| adds_to_output(name));
    }
    if !adds {
        return Ok(Vec::new());
    }
    let mut anew = Vec::new();
    let runs: BTreeSet<RunKey> = step
        .members
        .iter()
        .map(|activity| activity.run())
        .into_tree();
    for (path, _) in &step.outputs {
        let mut former = false;
        for key in store.at_path(path)? {
            let entity = store.entity(key)?;
            let is_file = matches!(entity.kind, EntityKind::File | EntityKind::Symlink);
            former |= is_file && entity.version == 0 && runs.contains(&key.run());
        }
        if !former {
            anew.push(path.clone());
        }
    }
    Ok(anew)
}

/// Something that a step did when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// It wrote this path outside the project.
    WritesOutside(Bytes),
    /// It removed this file and did not make it again. The file exists now.
    Deletes(Bytes),
    /// It talked to this peer.
    Network(Bytes),
    /// It executed this set-user-ID or set-group-ID program.
    Privilege(Bytes),
    /// A user with this id ran it, and now root would.
    AsRoot(u32),
}

impl Hazard {
    /// The kind in words, for JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Hazard::WritesOutside(_) => "writes outside",
            Hazard::Deletes(_) => "deletes",
            Hazard::Network(_) => "network",
            Hazard::Privilege(_) | Hazard::AsRoot(_) => "privilege",
        }
    }

    /// The path, address or user.
    pub fn subject(&self) -> Bytes {
        match self {
            Hazard::WritesOutside(it)
            | Hazard::Deletes(it)
            | Hazard::Network(it)
            | Hazard::Privilege(it) => it.clone(),
            Hazard::AsRoot(user) => format!("user {user}").into_bytes().into(),
        }
    }
}

/// The hazards of a step, sorted. `is_inside`: true for the paths of the project.
///
/// # Errors
///
/// If the store fails.
pub fn hazards(
    store: &dyn Store,
    step: &PlannedStep,
    is_inside: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<Hazard>> {
    let mut found = Findings::default();
    let is_root = rustix::process::geteuid().is_root();
    for &activity in &step.members {
        found.add(store, activity, is_inside, is_root)?;
    }
    let made: HashSet<&Bytes> = step.outputs.iter().map(|(path, _)| path).collect();
    let remade = |path: &Bytes| made.contains(path) || found.left.contains(path);
    let deleted = found.deleted.iter().filter(|path| !remade(path));
    let mut all = found.others;
    all.extend(
        deleted
            .filter(|path| to_path(path).symlink_metadata().is_ok())
            .cloned()
            .map(Hazard::Deletes),
    );
    let one_sided = found
        .sockets
        .into_values()
        .filter(|(_, sides)| *sides != [true, true]);
    all.extend(one_sided.map(|(name, _)| Hazard::Network(name)));
    let Some(header) = store.run(&step.run)?.map(|run| run.header) else {
        return Ok(all.into_iter().collect());
    };
    if is_root && header.uid != 0 {
        all.insert(Hazard::AsRoot(header.uid));
    }
    // The step gets the descriptors of `rerun` instead of those that the run inherited.
    let inherited = |path: &Bytes| header.descriptors.iter().any(|(_, name)| **name == **path);
    all.retain(|hazard| !matches!(hazard, Hazard::WritesOutside(path) if inherited(path)));
    Ok(all.into_iter().collect())
}

#[derive(Default)]
struct Findings {
    others: BTreeSet<Hazard>,
    /// Removed paths.
    deleted: BTreeSet<Bytes>,
    /// Paths of files that the activities made and left.
    left: HashSet<Bytes>,
    /// Network addresses, each with the sides that the activities have of it.
    sockets: HashMap<EntityKey, (Bytes, [bool; 2])>,
}

impl Findings {
    fn add(
        &mut self,
        store: &dyn Store,
        activity: ActivityKey,
        is_inside: &dyn Fn(&[u8]) -> bool,
        is_root: bool,
    ) -> Result<()> {
        for edge in store.stream(activity)?.edges {
            let key = EntityKey::new(activity.run(), edge.entity);
            match edge.relation {
                // A look changes nothing. A network peer is read and written.
                Relation::Stat | Relation::List | Relation::Missing | Relation::Link => {}
                _ => self.examine(key, &edge, &store.entity(key)?, is_inside, is_root),
            }
        }
        Ok(())
    }

    fn examine(
        &mut self,
        key: EntityKey,
        edge: &Edge,
        entity: &Entity,
        is_inside: &dyn Fn(&[u8]) -> bool,
        is_root: bool,
    ) {
        let path = &entity.path;
        match (edge.relation, entity.kind) {
            (_, EntityKind::Socket) if is_network(path) => {
                let socket = self.sockets.entry(key);
                let sides = &mut socket.or_insert((peer(path), [false; 2])).1;
                sides[usize::from(edge.relation.is_use())] = true;
            }
            (Relation::Execute, EntityKind::File) => {
                let mode = entity.ident.map_or(0, |ident| ident.mode);
                if mode & 0o6000 != 0 && mode & 0o111 != 0 && !is_root {
                    self.others.insert(Hazard::Privilege(path.clone()));
                }
            }
            (_, EntityKind::File | EntityKind::Directory | EntityKind::Symlink)
                if !edge.relation.is_use() && path.starts_with(b"/") =>
            {
                if edge.relation == Relation::Delete {
                    self.deleted.insert(path.clone());
                } else if entity.last {
                    self.left.insert(path.clone());
                    // To make a directory that exists changes nothing.
                    let known = entity.kind == EntityKind::Directory && to_path(path).is_dir();
                    if !is_inside(path) && !is_of_tool(path) && !known {
                        self.others.insert(Hazard::WritesOutside(path.clone()));
                    }
                }
            }
            _ => {}
        }
    }
}

/// True for a path that any program may write at any time: a device, a cache, a tool's own record.
fn is_of_tool(path: &[u8]) -> bool {
    is_below_kernel(path) || is_cache(path) || is_record(path)
}

/// True for an archiver. A cross archiver's name begins with its machine: `aarch64-linux-gnu-ar`.
fn adds_to_output(name: &[u8]) -> bool {
    let name = base_name(name);
    let short = name.rsplit(|byte| *byte == b'-').next().unwrap_or(name);
    let mut known = knowledge().programs.adds_to_output.iter();
    known.any(|known| known.as_bytes() == name || known.as_bytes() == short)
}

/// True for an address that other machines may have.
fn is_network(name: &[u8]) -> bool {
    name.starts_with(b"tcp:") || name.starts_with(b"udp:") || name.starts_with(b"sctp:")
}

/// The address without the mark of the direction.
fn peer(name: &Bytes) -> Bytes {
    match name.strip_suffix(b" (reply)") {
        Some(address) => address.into(),
        None => name.clone(),
    }
}
