//! The facts about the run of a description, and what the description leaves open.

use super::moments::DescribedMoments;
use super::ordering::ActivityOrder;
use super::statements::Description;
use super::{Locations, derivations, emission};
use crate::{Findings, ImportJob, RecordLog};
use backstory_eventlog::Reason;
use backstory_eventlog::job_rank::JobRank;
use backstory_ordering::SmallSort;
use backstory_vocabulary::counted;
use std::collections::BTreeMap;

/// Facts that a reader counted.
#[derive(Debug, Default)]
pub(crate) struct DescriptionGaps {
    /// Statements that have no place in the graph, by their kind.
    pub(crate) unplaced: BTreeMap<String, usize>,
    /// Further gaps, in sentences.
    pub(crate) gaps: Vec<String>,
    /// Times that cannot be read.
    pub(crate) unread_times: usize,
    /// Facts about times that were concluded.
    pub(crate) warnings: Vec<&'static str>,
}

/// All that a reader collected.
pub(crate) type DescribedRun = (Description, Locations, DescriptionGaps);

/// Writes the records of a run that a reader described. Returns the findings of the first reading:
/// those of the second are the same.
pub(crate) fn run(
    job: &ImportJob<'_>,
    known: Option<&Findings>,
    records: &mut RecordLog,
    name: &[u8],
    (description, locations, gaps): DescribedRun,
) -> Findings {
    let found = findings(description, job, name, (&locations, &gaps), records);
    known.cloned().unwrap_or(found)
}

/// The kinds of statements that are named in a reason.
const MOST_KINDS: usize = 8;

impl DescriptionGaps {
    /// Counts a statement that has no place in the graph.
    pub(crate) fn unplaced(&mut self, kind: &str) {
        let room = self.unplaced.len() < MOST_KINDS;
        match self.unplaced.get_mut(kind) {
            Some(count) => *count += 1,
            None if room => drop(self.unplaced.insert(kind.to_owned(), 1)),
            None => *self.unplaced.entry("other".to_owned()).or_default() += 1,
        }
    }
}

/// Writes the records of a description, and tells the facts about its run. `name` stands for the
/// command, if no activity has a name.
fn findings(
    mut description: Description,
    job: &ImportJob<'_>,
    name: &[u8],
    (locations, gaps): (&Locations, &DescriptionGaps),
    records: &mut RecordLog,
) -> Findings {
    derivations::complete(&mut description);
    description.drop_repeated_informings();
    let changed = job.files.changed();
    let moments = DescribedMoments::of(&description, changed);
    let order = ActivityOrder::of(&description, &moments);
    emission::write(&description, &moments, &order, records);
    let roots = order.parent.iter().enumerate();
    let mut roots: Vec<usize> = roots
        .filter(|(_, parent)| parent.is_none())
        .map(|(at, _)| at)
        .collect();
    roots.sort_small_by_key(|at| (moments.activities[*at].start, *at));
    let root = match roots[..] {
        [one] => Some(&description.activities[one]),
        _ => None,
    };
    let status = root.and_then(|root| root.status);
    let began = root.map_or(&b""[..], |root| &root.cwd);
    let began = locations.unrooted(began);
    let cwd = [
        began,
        locations.unrooted(&description.cwd),
        locations.base(),
    ];
    let cwd = cwd.into_iter().find(|cwd| !cwd.is_empty());
    Findings {
        command: match root {
            Some(root) if !root.words.is_empty() => root.words.clone(),
            _ => vec![label(&description, &roots, name)],
        },
        cwd: cwd.unwrap_or(b"/").to_vec(),
        started: moments.whole.map_or(changed, |whole| whole.start),
        ended: moments.whole.map_or(changed, |whole| whole.end),
        exit: status
            .filter(|status| status & 0x7f == 0)
            .map(|status| status >> 8),
        signal: status
            .map(|status| status & 0x7f)
            .filter(|signal| *signal != 0),
        job_rank: common_rank(&description, &roots),
        gaps: reasons(locations, gaps),
        warnings: warnings(&moments, &gaps.warnings),
        ..Findings::default()
    }
}

/// The place in a job of a run whose activities all have it: that of each of its roots.
fn common_rank(description: &Description, roots: &[usize]) -> Option<JobRank> {
    let mut ranks = roots
        .iter()
        .map(|at| description.activities[*at].job_rank.as_ref());
    let first = ranks.next()??;
    ranks.all(|rank| rank == Some(first)).then(|| first.clone())
}

/// The activities that no other one started, in words: the first of them, and how many more there
/// are. `name` stands for activities without a name.
fn label(description: &Description, roots: &[usize], name: &[u8]) -> Vec<u8> {
    let words = |at: &usize| match &description.activities[*at].words[..] {
        // The text that a shell runs stands for itself.
        [.., option, text] if option == b"-c" => text.clone(),
        words => words.join(&b' '),
    };
    let mut named = roots.iter().map(words).filter(|words| !words.is_empty());
    let Some(first) = named.next() else {
        return name.to_vec();
    };
    let more = roots.len() - 1;
    [first, format!(" and {more} more").into_bytes()].concat()
}

fn reasons(locations: &Locations, gaps: &DescriptionGaps) -> Vec<Reason> {
    let mut all = gaps.gaps.clone();
    if !gaps.unplaced.is_empty() {
        let kinds: Vec<String> = gaps
            .unplaced
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        all.push(format!(
            "statements of the document have no place in the graph: {}",
            kinds.join(", ")
        ));
    }
    if gaps.unread_times > 0 {
        let times = counted(gaps.unread_times, "time", "times");
        all.push(format!("{times} of the document cannot be read"));
    }
    if let Some(directory) = locations.guess() {
        all.push(format!(
            "the document does not have the directory of its relative paths, which are taken to \
             begin at {}",
            directory.display()
        ));
    }
    all.into_iter()
        .map(|what| Reason::ImportGap { what })
        .collect()
}

fn warnings(moments: &DescribedMoments, own: &[&'static str]) -> Vec<Reason> {
    let mut all = Vec::new();
    if moments.whole.is_none() {
        all.push("the document has no times, so all of the run is at the time of its file");
    }
    if moments.contradictions > 0 {
        all.push("the document has uses of things before they were made; it has a wrong clock");
    }
    all.extend(own);
    all.into_iter()
        .map(|what| Reason::ImportedTimes { what })
        .collect()
}
