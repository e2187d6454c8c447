//! Makes room among the stored contents, the least valuable first.
//!
//! In: the facts and the runs of a store. Out: a store whose contents take fewer bytes. For each
//! content that went, a fact says why, and which run can make it again.
//!
//! A run can make its outputs again if
//!
//! - it is complete, and its command succeeded,
//! - all files that it read are stored, or are in packages,
//! - it read from no socket, no pipe that it did not write, no device but `/dev/null` and
//!   `/dev/zero`, and from no memory of other processes.
//!
//! Invariant: contents that runs of the last ten minutes used stay, unless the user asks for all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::time::Duration;

use backstory_contents::{Contents, Reclaimed};
use backstory_evidence::Chain;
use backstory_exchange::outgoing;
use backstory_files::Digest;
use backstory_graph::model::{Entity, EntityKind, Relation};
use backstory_store::facts::{Availability, Fact};
use backstory_store::{ActivityKey, Home, RunKey, RunRecord, Store};

use super::least_valuable::{MakerRun, StoredContent, least_valuable};
use super::{open_contents, reclaim};
use crate::error::{Failure, chain};
use crate::file_age;
use crate::shell_policy::ContentLimits;
use crate::text::when::{self, size as shown};

/// Runs that are younger stay, in ns: their files may be about to be used.
pub const YOUNG: i64 = 600 * 1_000_000_000;

/// Percent of the budget that are free after room was made.
const ROOM: u64 = 20;

/// Percent of the budget that are free after the budget was lowered.
const LITTLE_ROOM: u64 = 10;

/// Attempts in a row. A content takes less space than its size, so that one may free too little.
const ATTEMPTS: u32 = 4;

/// Time after an attempt in vain. It reads the graphs of all runs.
const PAUSE: Duration = Duration::from_secs(600);

/// Makes room for contents of a run, as far as contents may go. The caller holds the lock of the
/// contents.
pub fn make_room(
    home: &Home,
    store: &mut dyn Store,
    limits: &ContentLimits,
) -> Result<(), Failure> {
    let in_vain = home.dir().join("contents.full");
    if file_age::is_younger(&in_vain, PAUSE) {
        return Ok(());
    }
    let freed = shrink(home, store, limits, (ROOM, ROOM), YOUNG, false)?;
    match freed.objects {
        0 => file_age::mark(&in_vain)?,
        _ => drop(fs::remove_file(&in_vain)),
    }
    Ok(())
}

/// Removes what is over the budget. Contents of runs of the last `spared` ns stay.
pub fn keep(
    home: &Home,
    store: &mut dyn Store,
    limits: &ContentLimits,
    spared: i64,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    shrink(home, store, limits, (0, LITTLE_ROOM), spared, dry)
}

/// True if the contents of a store are over their budget.
pub fn is_over(home: &Home, limits: &ContentLimits) -> Result<bool, Failure> {
    Ok(excess(home, limits, (0, 0))?.is_some_and(|(over, _)| over > 0))
}

/// The bytes that have to go so that `room.1` percent of the budget are free, and the budget. 0 if
/// `room.0` percent are free. `None` without a budget.
fn excess(
    home: &Home,
    limits: &ContentLimits,
    room: (u64, u64),
) -> Result<Option<(u64, u64)>, Failure> {
    let Some(budget) = limits.store.bytes_at(home.dir()) else {
        return Ok(None);
    };
    let used = match open_contents(home)? {
        Some(contents) => contents.disk()?,
        None => 0,
    };
    let most = |percent: u64| budget - budget / 100 * percent;
    let over = match used > most(room.0) {
        true => used - most(room.1).min(used),
        false => 0,
    };
    Ok(Some((over, budget)))
}

fn shrink(
    home: &Home,
    store: &mut dyn Store,
    limits: &ContentLimits,
    room: (u64, u64),
    spared: i64,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let mut freed = Reclaimed::default();
    for _ in 0..ATTEMPTS {
        let Some((over @ 1.., budget)) = excess(home, limits, room)? else {
            break;
        };
        let more = drop_least_valuable(home, store, over, budget, spared, dry)?;
        freed = freed + more;
        if dry || more.objects == 0 {
            break;
        }
    }
    Ok(freed)
}

/// Drops the least valuable contents, of `bytes` together. `limit` is named as the reason.
pub fn drop_least_valuable(
    home: &Home,
    store: &mut dyn Store,
    bytes: u64,
    limit: u64,
    spared: i64,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let now = when::now();
    let Gathered {
        contents,
        makers,
        young,
    } = gather(home, store, now.saturating_sub(spared))?;
    let chosen = least_valuable(&contents, &makers, &young, bytes, now);
    let (date, limit) = (when::date(now), shown(limit));
    let why = |maker: Option<String>| {
        let dropped = format!("it was dropped on {date} to keep to the limit of {limit}");
        match maker {
            Some(run) => format!("{dropped}: `backstory replay {run}` makes it again"),
            None => dropped,
        }
    };
    let dropped: HashMap<Digest, String> = chosen
        .into_iter()
        .map(|(digest, maker)| (digest, why(maker)))
        .collect();
    if dropped.is_empty() {
        return Ok(Reclaimed::default());
    }
    reclaim::drop_contents(home, store, &dropped, dry)
}

/// The facts that decide about the contents of a store.
struct Gathered {
    contents: Vec<StoredContent>,
    makers: Vec<MakerRun>,
    /// Contents of runs that began after the given time.
    young: HashSet<Digest>,
}

fn gather(home: &Home, store: &dyn Store, until: i64) -> Result<Gathered, Failure> {
    let mut stored: BTreeMap<Digest, (u64, i64)> = BTreeMap::new();
    for fact in store.facts()? {
        if let Some(digest) = stored_digest(&fact) {
            let size = fact.ident.size.unsigned_abs();
            let known = stored.entry(digest).or_insert((size, fact.ident.mtime));
            known.1 = known.1.max(fact.ident.mtime);
        }
    }
    // To forget where a content lies elsewhere would free no space.
    if let Some(contents) = open_contents(home)?.filter(Contents::has_places) {
        for digest in stored.keys().copied().collect::<Vec<_>>() {
            if contents.is_elsewhere(&digest)? {
                stored.remove(&digest);
            }
        }
    }
    let own = store.own_runs()?;
    let is_own = |key: RunKey| own.as_ref().is_none_or(|own| own.contains(&key));
    let sealed_runs = Chain::of(home).sealed_runs()?;
    let (mut makers, mut young, mut sealed) = (Vec::new(), HashSet::new(), HashSet::new());
    for run in store.runs()? {
        let entities = store.entities(run.key)?;
        if sealed_runs.contains(&run.header.id) {
            let learned = outgoing::learned(home, store, std::slice::from_ref(&run))
                .map_err(|error| Failure::not_found(chain(&error)))?;
            sealed.extend(
                outgoing::stored(&learned)
                    .into_iter()
                    .map(|(digest, _)| digest),
            );
        }
        if run.header.started > until {
            for entity in &entities {
                young.extend(fact(store, entity)?.as_ref().and_then(stored_digest));
            }
        } else if is_own(run.key) {
            makers.extend(maker(store, &run, &entities)?);
        }
    }
    let contents = stored.into_iter();
    Ok(Gathered {
        contents: contents
            .map(|(digest, (size, time))| StoredContent {
                digest,
                size,
                time,
                sealed: sealed.contains(&digest),
            })
            .collect(),
        makers,
        young,
    })
}

fn stored_digest(fact: &Fact) -> Option<Digest> {
    fact.digest.filter(|_| fact.availability.is_stored())
}

fn fact(store: &dyn Store, entity: &Entity) -> Result<Option<Fact>, Failure> {
    Ok(match &entity.ident {
        Some(ident) if entity.kind == EntityKind::File => store.fact(ident)?,
        _ => None,
    })
}

/// The run with its inputs and outputs, if it can be replayed with the same inputs.
fn maker(
    store: &dyn Store,
    run: &RunRecord,
    entities: &[Entity],
) -> Result<Option<MakerRun>, Failure> {
    let (header, end) = (&run.header, &run.end);
    let complete = end.incomplete_because.is_empty() && run.unknown.is_empty() && end.lost == 0;
    let settled = header.modes.stores_contents() && store.directory_snapshot(&header.id)?.is_some();
    if !complete || !settled || end.exit != Some(0) || header.imported.is_some() {
        return Ok(None);
    }
    let mut maker = MakerRun {
        id: header.id.clone(),
        ..MakerRun::default()
    };
    for entity in entities.iter().filter(|one| one.version > 0 && one.last) {
        maker
            .made
            .extend(fact(store, entity)?.as_ref().and_then(stored_digest));
    }
    if maker.made.is_empty() {
        return Ok(None);
    }
    let Flows { read, written } = flows(store, run)?;
    for id in read {
        let Some(entity) = entities.get(id as usize) else {
            return Ok(None);
        };
        if entity.version > 0 {
            continue;
        }
        match fact(store, entity)? {
            Some(fact) => match (fact.digest, fact.availability) {
                (Some(digest), Availability::Stored | Availability::StoredPackage(_)) => {
                    maker.inputs.push(digest);
                }
                (_, Availability::Package(_)) => {}
                _ => return Ok(None),
            },
            None if is_the_same_everywhere(entity) => {}
            // A pipe between processes of the run.
            None if entity.kind == EntityKind::Pipe && written.contains(&id) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(maker))
}

/// The entities that content flowed from and to.
#[derive(Debug, Default)]
struct Flows {
    read: HashSet<u32>,
    written: HashSet<u32>,
}

fn flows(store: &dyn Store, run: &RunRecord) -> Result<Flows, Failure> {
    let mut flows = Flows::default();
    for activity in store.activities(run.key)? {
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        for edge in &stream.edges {
            match edge.relation {
                Relation::Read | Relation::Execute => flows.read.insert(edge.entity.0),
                Relation::Write => flows.written.insert(edge.entity.0),
                _ => false,
            };
        }
        // The run changed these in part.
        flows
            .read
            .extend(stream.derived.iter().map(|derived| derived.from.0));
    }
    Ok(flows)
}

/// Things without a content of their own.
fn is_the_same_everywhere(entity: &Entity) -> bool {
    let path: &[u8] = &entity.path;
    match entity.kind {
        EntityKind::Directory | EntityKind::Symlink | EntityKind::Missing => true,
        EntityKind::Device => {
            let is_null = [&b"/dev/null"[..], b"/dev/zero", b"/dev/full"].contains(&path);
            is_null || path.starts_with(b"/proc/") || path.starts_with(b"/sys/")
        }
        // The kernel's own: files of `/proc` have no stored content.
        EntityKind::File => path.starts_with(b"/proc/") || path.starts_with(b"/sys/"),
        EntityKind::Pipe | EntityKind::Socket | EntityKind::Memory | EntityKind::Resource => false,
    }
}
