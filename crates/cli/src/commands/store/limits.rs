//! Keeps a store within the limits of the user's `config.toml`.
//!
//! In: the runs of a store, each with the files that it used and left. Out: the runs that go. Lines
//! of noise go first, then what is large and old. Contents go at last ([`contents_budget`]).
//!
//! Invariant: a run stays if a file that exists came from it, over any number of runs. So do runs
//! with a name or a note, and runs of other users.
//!
//! Absent: files that an unrecorded program moved. They count as gone.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use backstory_contents::Reclaimed;
use backstory_eventlog::Reason;
use backstory_files::{Digest, VersionId};
use backstory_graph::model::{Entity, EntityKind};
use backstory_query as query;
use backstory_store::{EngineControl, GraphStore, Home, RunKey, RunRecord, same_version};

use super::contents_budget::{self, YOUNG};
use super::{keep_lock, reclaim};
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::file_age;
use crate::shell_policy::{ContentBudget, ShellPolicy, StoreLimits};
use crate::text::progress::{Progress, Unit};
use crate::text::when;

/// Percent of the limit that are free afterwards. So the store is not too large again at once.
const ROOM: u64 = 10;

/// Time between two looks at the size of a store.
const PAUSE: Duration = Duration::from_secs(600);

/// A run with all that decides whether it stays.
#[derive(Debug, Clone, Default)]
struct WeighedRun {
    /// Its begin, in ns since 1970.
    started: i64,
    /// The day of its begin, in the user's time zone.
    day: String,
    /// Bytes of its log, of its deep log, and of its part of the database.
    bytes: u64,
    /// The user listed its commands as noise.
    noise: bool,
    /// A file that it left exists, or the user named it.
    stays: bool,
    /// Numbers of the contents that it used.
    used: Vec<u32>,
    /// Numbers of the contents that it left.
    left: Vec<u32>,
}

/// Removes what is over the limits. Returns the removed runs, and the space that they free. Runs of
/// the last `spared` ns stay.
///
/// # Errors
///
/// If the store cannot be read or changed.
pub fn keep(
    current: &mut CurrentStore,
    limits: StoreLimits,
    spared: i64,
    dry: bool,
) -> Result<(Vec<RunRecord>, Reclaimed), Failure> {
    let all = current.store.runs()?;
    let size = reclaim::total(current)?;
    let over = |size| excess(size, limits.store);
    let weighed = weigh(current, &all)?;
    let old_enough = when::now().saturating_sub(spared);
    let gone: Vec<RunRecord> = superfluous(&weighed, over(size), limits.day, old_enough)
        .into_iter()
        .map(|at| all[at].clone())
        .collect();
    let none = HashSet::new();
    let mut freed = reclaim::reclaim(current, &gone, &none, dry)?;
    if dry {
        return Ok((gone, freed));
    }
    if !gone.is_empty() {
        current.store.compact()?;
    }
    let rest = over(reclaim::total(current)?);
    if rest > 0 {
        let limit = limits.store.unwrap_or_default();
        let _lock = keep_lock(&current.home)?;
        let (home, store) = (&current.home, &mut *current.store);
        let more = contents_budget::drop_least_valuable(home, store, rest, limit, spared, false)?;
        freed = freed + more;
    }
    Ok((gone, freed))
}

/// The same for the process that indexes in the background, and for the budget of the contents. It
/// looks at the size only now and then.
pub fn keep_in_background(home: &Home, policy: &ShellPolicy) -> Result<(), Failure> {
    let (limits, contents) = (policy.limits, &policy.contents);
    let looked = home.dir().join("limits.looked");
    let is_unlimited = contents.store == ContentBudget::Unlimited;
    if limits == StoreLimits::default() && is_unlimited || file_age::is_younger(&looked, PAUSE) {
        return Ok(());
    }
    file_age::mark(&looked)?;
    let are_contents_over = contents_budget::is_over(home, contents)?;
    if limits == StoreLimits::default() && !are_contents_over {
        return Ok(());
    }
    let mut current = CurrentStore::open(Some(home.dir()))?;
    if is_over(&current, limits)? {
        keep(&mut current, limits, YOUNG, false)?;
    }
    if are_contents_over {
        let _lock = keep_lock(home)?;
        contents_budget::keep(home, &mut *current.store, contents, YOUNG, false)?;
    }
    Ok(())
}

/// The bytes that a store of this size has to lose.
fn excess(size: u64, limit: Option<u64>) -> u64 {
    match limit {
        Some(most) if size > most => size - (most - most / 100 * ROOM),
        _ => 0,
    }
}

/// True if the store or one of its days is over its limit. Needs the records of runs only, not
/// their files.
fn is_over(current: &CurrentStore, limits: StoreLimits) -> Result<bool, Failure> {
    if excess(reclaim::total(current)?, limits.store) > 0 {
        return Ok(true);
    }
    let Some(most) = limits.day else {
        return Ok(false);
    };
    let all = current.store.runs()?;
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    for (run, bytes) in all.iter().zip(sizes(current, &all)?) {
        *days.entry(when::date(run.header.started)).or_default() += bytes;
    }
    Ok(days.values().any(|bytes| *bytes > most))
}

/// The bytes of each run: of its log and deep log, and its part of the database.
fn sizes(current: &CurrentStore, all: &[RunRecord]) -> Result<Vec<u64>, Failure> {
    let logs: u64 = all.iter().map(|run| run.log_bytes).sum();
    let database = match current.store.is_shared() {
        true => 0,
        false => current.store.stats()?.bytes,
    };
    let of_run = |run: &RunRecord| {
        let part = u128::from(database) * u128::from(run.log_bytes) / u128::from(logs.max(1));
        let own = reclaim::log_bytes(&current.home, run);
        own.saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
    };
    Ok(all.iter().map(of_run).collect())
}

/// Reads what decides about the runs.
fn weigh(current: &CurrentStore, all: &[RunRecord]) -> Result<Vec<WeighedRun>, Failure> {
    let own: HashSet<RunKey> = reclaim::own_runs(current)?
        .iter()
        .map(|run| run.key)
        .collect();
    let noise = Reason::OnlyLine {}.to_string();
    let mut contents = ContentNumbers::default();
    let what = "finding the runs that files came from";
    let progress = Progress::of(what, all.len() as u64, Unit::Things);
    let mut weighed = Vec::with_capacity(all.len());
    for (run, bytes) in all.iter().zip(sizes(current, all)?) {
        progress.done.add(1);
        let mut one = WeighedRun {
            started: run.header.started,
            day: when::date(run.header.started),
            bytes,
            noise: run.end.incomplete_because.contains(&noise),
            stays: run.name.is_some() || run.note.is_some() || !own.contains(&run.key),
            ..WeighedRun::default()
        };
        for entity in current.store.entities(run.key)? {
            let Some(ident) = entity.ident else { continue };
            if entity.kind != EntityKind::File {
                continue;
            }
            let numbers = match entity.version {
                0 => &mut one.used,
                _ if entity.last => &mut one.left,
                _ => continue,
            };
            one.stays |= entity.version > 0 && exists(&entity);
            numbers.push(contents.of_version(ident.version_id()));
            if let Some((Some(digest), _)) = query::known(&current.store, Some(&ident))? {
                numbers.push(contents.of_digest(digest));
            }
        }
        weighed.push(one);
    }
    Ok(weighed)
}

/// True if the file of a version is still at one of its paths.
fn exists(entity: &Entity) -> bool {
    let mut paths = std::iter::once(&entity.path).chain(&entity.aliases);
    entity.ident.is_some_and(|ident| {
        paths.any(|path| {
            let path = Path::new(OsStr::from_bytes(path));
            let now = query::present_identity(path, false);
            now.is_some_and(|now| same_version(&now, &ident))
        })
    })
}

/// Numbers for contents, by the version of a file and by the digest.
#[derive(Debug, Default)]
struct ContentNumbers {
    versions: HashMap<VersionId, u32>,
    digests: HashMap<Digest, u32>,
}

impl ContentNumbers {
    fn next(&self) -> u32 {
        (self.versions.len() + self.digests.len()) as u32
    }

    fn of_version(&mut self, version: VersionId) -> u32 {
        let next = self.next();
        *self.versions.entry(version).or_insert(next)
    }

    fn of_digest(&mut self, digest: Digest) -> u32 {
        let next = self.next();
        *self.digests.entry(digest).or_insert(next)
    }
}

/// The indexes of the runs to remove, as far as runs are superfluous. The store becomes `over`
/// bytes smaller, and no day has more than its limit. Runs that began after `until` stay.
fn superfluous(runs: &[WeighedRun], over: u64, day: Option<u64>, until: i64) -> Vec<usize> {
    let needed = needed(runs);
    let mut candidates: Vec<usize> = (0..runs.len())
        .filter(|&at| !needed[at] && runs[at].started <= until)
        .collect();
    let age = |run: &WeighedRun| until.saturating_sub(run.started).max(0).unsigned_abs();
    let weight = |run: &WeighedRun| u128::from(run.bytes) * u128::from(age(run));
    candidates.sort_small_by_key(|&at| (!runs[at].noise, std::cmp::Reverse(weight(&runs[at]))));
    let mut days: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        *days.entry(&run.day).or_default() += run.bytes;
    }
    let (mut gone, mut freed) = (Vec::new(), 0);
    let most = day.unwrap_or(u64::MAX);
    for &at in &candidates {
        let of_day = days.entry(&runs[at].day).or_default();
        if *of_day > most {
            *of_day -= runs[at].bytes;
            freed += runs[at].bytes;
            gone.push(at);
        }
    }
    let before: HashSet<usize> = gone.iter().copied().collect();
    for at in candidates {
        if freed >= over {
            break;
        }
        if !before.contains(&at) {
            freed += runs[at].bytes;
            gone.push(at);
        }
    }
    gone
}

/// Which runs stay: those that must, and all that made what a staying run used.
fn needed(runs: &[WeighedRun]) -> Vec<bool> {
    let mut makers: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, run) in runs.iter().enumerate() {
        for &content in &run.left {
            makers.entry(content).or_default().push(at);
        }
    }
    let mut needed: Vec<bool> = runs.iter().map(|run| run.stays).collect();
    let mut waiting: Vec<usize> = (0..runs.len()).filter(|&at| needed[at]).collect();
    while let Some(at) = waiting.pop() {
        let used = runs[at].used.iter();
        for &maker in used.filter_map(|content| makers.get(content)).flatten() {
            if !std::mem::replace(&mut needed[maker], true) {
                waiting.push(maker);
            }
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400 * 1_000_000_000;
    const NOW: i64 = 100 * DAY;

    /// A run of so many days ago.
    fn run(days: i64, bytes: u64, used: &[u32], left: &[u32]) -> WeighedRun {
        WeighedRun {
            started: NOW - days * DAY,
            day: format!("{:03}", 100 - days),
            bytes,
            used: used.to_vec(),
            left: left.to_vec(),
            ..WeighedRun::default()
        }
    }

    #[test]
    fn noise_goes_first_then_what_is_large_and_old() {
        let noise = WeighedRun {
            noise: true,
            ..run(1, 10, &[], &[])
        };
        let runs = [
            run(9, 10, &[], &[]),
            run(2, 90, &[], &[]),
            noise,
            run(1, 10, &[], &[]),
        ];
        let of = |over| superfluous(&runs, over, None, NOW);
        assert_eq!(of(0), [0; 0]);
        assert_eq!(of(5), [2]);
        assert_eq!(of(11), [2, 1]);
        assert_eq!(of(101), [2, 1, 0]);
    }

    #[test]
    fn what_a_file_that_exists_came_from_stays() {
        let last = WeighedRun {
            stays: true,
            ..run(1, 10, &[2], &[3])
        };
        let chain = [
            run(9, 10, &[], &[1]),
            run(8, 10, &[1], &[2]),
            run(7, 10, &[1], &[5]),
            last,
        ];
        assert_eq!(superfluous(&chain, u64::MAX, Some(0), NOW), [2]);
    }

    #[test]
    fn a_day_over_its_limit_loses_its_own_runs_only() {
        let runs = [
            run(3, 60, &[], &[]),
            run(2, 60, &[], &[]),
            run(2, 70, &[], &[]),
        ];
        assert_eq!(superfluous(&runs, 0, Some(100), NOW), [2]);
    }

    #[test]
    fn a_run_of_this_moment_stays() {
        let runs = [run(0, 60, &[], &[])];
        assert_eq!(superfluous(&runs, 60, None, NOW - 1), [0; 0]);
        assert_eq!(superfluous(&runs, 60, None, NOW), [0]);
    }

    /// A developer edits a source, builds it, and makes experiments with the build. The newest
    /// source and build exist, and one experiment of each of the last seven days. Half of the
    /// lines are noise.
    struct Developer {
        runs: Vec<WeighedRun>,
        contents: u32,
        source: u32,
        build: u32,
    }

    impl Developer {
        fn day(&mut self, ago: i64) {
            for line in 0..40 {
                self.contents += 1;
                let new = self.contents;
                let one = match line % 8 {
                    0 => run(ago, 2_000, &[self.source], &[new]),
                    1 => run(ago, 30_000, &[self.source], &[new]),
                    2..=5 => WeighedRun {
                        noise: true,
                        ..run(ago, 700, &[], &[])
                    },
                    _ => run(ago, 8_000, &[self.build], &[new]),
                };
                match line % 8 {
                    0 => self.source = new,
                    1 => self.build = new,
                    _ => {}
                }
                self.runs.push(one);
            }
            let oldest = format!("{:03}", 100 - ago - 7);
            let mut experiment = String::new();
            for run in &mut self.runs {
                let left = run.left.first().copied().unwrap_or_default();
                let first = run.bytes == 8_000 && run.day > oldest && run.day != experiment;
                run.stays = left == self.source || left == self.build || first;
                if first {
                    experiment.clone_from(&run.day);
                }
            }
        }

        fn size(&self) -> u64 {
            self.runs.iter().map(|run| run.bytes).sum()
        }
    }

    #[test]
    fn thirty_days_of_a_developer_stay_within_the_limits_and_keep_each_lineage() {
        const LIMIT: u64 = 900_000;
        let mut developer = Developer {
            runs: Vec::new(),
            contents: 1,
            source: 0,
            build: 1,
        };
        let mut unlimited = 0;
        for ago in (0..30).rev() {
            let before = developer.size();
            developer.day(ago);
            let size = developer.size();
            unlimited += size - before;
            let over = excess(size, Some(LIMIT));
            let gone = superfluous(&developer.runs, over, Some(200_000), NOW - ago * DAY);
            let needed = needed(&developer.runs);
            assert!(gone.iter().all(|&at| !needed[at]));
            let mut at = 0..;
            developer
                .runs
                .retain(|_| at.next().is_some_and(|at| !gone.contains(&at)));
            assert!(developer.size() <= LIMIT, "{} bytes", developer.size());
        }
        assert!(unlimited > 8 * LIMIT, "{unlimited} bytes");
        let edits = developer.runs.iter().filter(|run| run.bytes == 2_000);
        assert_eq!(edits.count(), 30 * 5, "each edit is a part of the source");
    }
}
