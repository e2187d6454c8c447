//! The differences between two runs, or between the ancestries of two versions of a file, and the
//! earliest of them.
//!
//! In: two [`DiffSide`]s. Out: [`Difference`]s in the order in which they can have had an effect.
//! The environment of the first program comes first, then inputs and commands in order of time.
//!
//! - Commands are aligned like the lines of a text, by program and arguments. The commands left
//!   between are aligned by program alone.
//! - Files are aligned by path: relative to the run's directory for files below it, and for files
//!   that lie at the same place beside it. Names that differ each time are matched by their form.
//!
//! Each difference has a [`DifferenceWeight`]: a user looks for the cause among changes of his own
//! first. The weight changes neither the order nor the set of differences.

mod beside;
mod callers_work;
mod command_callers;
mod commands;
mod file_use;
mod files;
mod listing_differences;
mod listings;
mod mere_callers;
mod noted_values;
mod random_matches;
mod random_names;
mod run_use;
mod side;
mod side_part;
mod unused_causes;
mod weights;

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::Certainty;
use backstory_query::answer::RunDetails;
use backstory_store::facts::Package;
use backstory_store::{ActivityKey, EntityKey, Store};

pub use listings::DirectoryListing;
pub use side::{DiffSide, DiffSubject, SideCommand, SideFile};
pub use unused_causes::UnusedCauses;
pub use weights::DifferenceWeight;

use crate::Result;

/// The kind of a difference. The order decides among differences at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// Kernel, processor or distribution.
    Machine,
    /// A variable that the run's command began with.
    Environment,
    /// A parameter that was noted with the run.
    Parameter,
    /// The directory that a command ran in.
    Directory,
    /// The arguments of a command.
    Arguments,
    /// A variable that was set or removed for a command.
    Variable,
    /// A program's file.
    Program,
    /// A shared library.
    Library,
    /// Any other file that was read.
    Input,
    /// The names in a listed directory. Only names that one side alone found are reported.
    Listing,
    /// A command that one side alone ran.
    Command,
    /// The exit status of a command.
    Exit,
    /// A metric that was noted with the run.
    Metric,
    /// A file that the run left.
    Output,
}

impl DifferenceKind {
    /// The word in messages and JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceKind::Machine => "machine",
            DifferenceKind::Environment => "environment",
            DifferenceKind::Parameter => "parameter",
            DifferenceKind::Directory => "directory",
            DifferenceKind::Arguments => "arguments",
            DifferenceKind::Variable => "variable",
            DifferenceKind::Program => "program",
            DifferenceKind::Library => "library",
            DifferenceKind::Input => "input",
            DifferenceKind::Listing => "listing",
            DifferenceKind::Command => "command",
            DifferenceKind::Exit => "exit",
            DifferenceKind::Metric => "metric",
            DifferenceKind::Output => "output",
        }
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its kind.
    pub kind: DifferenceKind,
    /// Its subject: a path, a variable, a command.
    pub of: Vec<u8>,
    /// The value on the first side; `None` if the subject is absent there.
    pub a: Option<Vec<u8>>,
    /// The value on the second side.
    pub b: Option<Vec<u8>>,
    /// The first time at which it can have had an effect: ns since the begin of the side on which
    /// that is earlier.
    pub at: Time,
    /// For an output: the differences that it may result from, as indexes into
    /// [`Diff::differences`].
    pub fed_by: Vec<usize>,
    /// How likely it is a cause that matters to the user.
    pub weight: DifferenceWeight,
    /// For a file: its version on either side.
    pub versions: [Option<EntityKey>; 2],
    /// For a file of a package: the package on either side.
    pub packages: [Option<Package>; 2],
    /// For an output: a later program of its run read it, or it is not the user's own.
    pub is_intermediate: bool,
    /// It belongs to the command that the user gave to `record`.
    is_of_command: bool,
    /// Its paths, on either side.
    paths: Vec<Bytes>,
    /// Its activities, on either side.
    activities: Vec<ActivityKey>,
}

impl Difference {
    fn new(
        kind: DifferenceKind,
        of: impl Into<Vec<u8>>,
        a: Option<Vec<u8>>,
        b: Option<Vec<u8>>,
        at: Time,
    ) -> Difference {
        Difference {
            kind,
            of: of.into(),
            a,
            b,
            at,
            fed_by: Vec::new(),
            weight: DifferenceWeight::System,
            versions: [None, None],
            packages: [None, None],
            is_intermediate: false,
            is_of_command: false,
            paths: Vec::new(),
            activities: Vec::new(),
        }
    }

    /// The package of which one side used another version: its name, and both versions.
    pub fn package_change(&self) -> Option<(&str, [&str; 2])> {
        let [Some(a), Some(b)] = &self.packages else {
            return None;
        };
        let is_change = a.name == b.name && a.version != b.version;
        is_change.then_some((&a.name, [&a.version, &b.version]))
    }

    /// True if only one side has the subject.
    pub fn is_of_one_side(&self) -> bool {
        self.a.is_none() || self.b.is_none()
    }

    /// True for a difference that existed before any program ran, and can affect everything.
    pub fn is_general(&self) -> bool {
        matches!(
            self.kind,
            DifferenceKind::Machine | DifferenceKind::Environment | DifferenceKind::Parameter
        )
    }
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Diff {
    /// The runs of the first side, oldest first.
    pub a: Vec<RunDetails>,
    /// The runs of the second side.
    pub b: Vec<RunDetails>,
    /// All differences, the earliest first.
    pub differences: Vec<Difference>,
    /// Files that both sides have and that cannot be compared, because a content is not known.
    pub unknown: Vec<Vec<u8>>,
    /// Those of them that are inputs of the user's own, the first used one first. Each may be the
    /// cause of every difference, so none of the known differences is *the* cause.
    pub unknown_causes: Vec<Vec<u8>>,
    /// Outputs with the same content on both sides.
    pub same_outputs: Vec<Vec<u8>>,
    /// Edges of less certainty were not followed.
    pub least: Certainty,
}

impl Diff {
    /// The answer in one word. Two sides are the same only if all was compared.
    pub fn verdict(&self) -> DiffVerdict {
        match (self.differences.is_empty(), self.unknown.is_empty()) {
            (false, _) => DiffVerdict::Different,
            (true, true) => DiffVerdict::Same,
            (true, false) => DiffVerdict::Unknown,
        }
    }
}

/// Whether two sides are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffVerdict {
    /// All was compared, and nothing differs.
    Same,
    /// Something differs.
    Different,
    /// Nothing is known to differ, but some files could not be compared.
    Unknown,
}

impl DiffVerdict {
    /// The word in messages and JSON.
    pub fn word(self) -> &'static str {
        match self {
            DiffVerdict::Same => "same",
            DiffVerdict::Different => "different",
            DiffVerdict::Unknown => "unknown",
        }
    }
}

/// Compares two sides.
///
/// The ancestries of two versions are compared along certain edges. Possible edges are followed
/// only if the certain ancestries have no difference: they lead from a file to nearly all that a
/// build did.
///
/// # Errors
///
/// If a run or file does not exist, or the store fails.
pub fn diff(store: &dyn Store, a: &DiffSubject, b: &DiffSubject) -> Result<Diff> {
    let certain = compare(store, a, b, Certainty::Seen)?;
    let explains = |from: &Difference| !from.is_general() && from.kind < DifferenceKind::Exit;
    let runs = matches!((a, b), (DiffSubject::Run(_), DiffSubject::Run(_)));
    match runs || certain.differences.iter().any(explains) {
        true => Ok(certain),
        false => compare(store, a, b, Certainty::Possible),
    }
}

/// Reads both sides, and gives their files the names that both can share. The ancestry of a version
/// is followed along edges that are at least this certain.
///
/// # Errors
///
/// If a run or file does not exist, or the store fails.
pub fn sides(
    store: &dyn Store,
    a: &DiffSubject,
    b: &DiffSubject,
    least: Certainty,
) -> Result<(DiffSide, DiffSide)> {
    let mut a = DiffSide::load(store, a, least)?;
    let mut b = DiffSide::load(store, b, least)?;
    beside::align(&mut a, &mut b);
    random_matches::align(&a, &mut b);
    Ok((a, b))
}

/// Compares two sides. Edges of less certainty than `least` are not followed.
fn compare(store: &dyn Store, a: &DiffSubject, b: &DiffSubject, least: Certainty) -> Result<Diff> {
    let (a, b) = sides(store, a, b, least)?;
    let mut found = Findings::default();
    surroundings(&a, &b, &mut found);
    noted_values::compare(&a, &b, &mut found);
    commands::compare(&a, &b, &mut found);
    files::compare(&a, &b, &mut found);
    listing_differences::compare(&a, &b, &mut found);
    found
        .differences
        .sort_small_by(|x, y| (x.at, x.kind, &x.of).cmp(&(y.at, y.kind, &y.of)));
    feed(store, &a, &b, &mut found.differences)?;
    weights::weigh(&a, &b, &mut found.differences);
    let unknown_causes = weights::own_inputs(&a, &b, &found.unknown);
    let unknown = found.unknown.into_iter().map(|file| file.name);
    Ok(Diff {
        a: a.runs,
        b: b.runs,
        differences: found.differences,
        unknown: unknown.collect(),
        unknown_causes,
        same_outputs: found.same_outputs,
        least,
    })
}

/// The differences found so far.
#[derive(Debug, Default)]
struct Findings {
    differences: Vec<Difference>,
    unknown: Vec<UnknownFile>,
    same_outputs: Vec<Vec<u8>>,
}

/// A file that both sides have and that cannot be compared.
#[derive(Debug)]
struct UnknownFile {
    /// Its name from the runs' directories.
    name: Vec<u8>,
    /// Its paths on both sides.
    paths: [Bytes; 2],
    /// A run left it. Else the runs read it.
    is_output: bool,
    /// The earlier of its first uses, in ns since the begin of its side.
    at: Time,
}

/// The number of differing outputs whose causes are looked up. A user does not read the causes of
/// more.
const FOLLOWED: usize = 50;

fn feed(
    store: &dyn Store,
    a: &DiffSide,
    b: &DiffSide,
    differences: &mut [Difference],
) -> Result<()> {
    let outputs: Vec<usize> = (0..differences.len())
        .filter(|&at| differences[at].kind == DifferenceKind::Output)
        .take(FOLLOWED)
        .collect();
    for at in outputs {
        let name = differences[at].of.clone();
        let (mut paths, mut activities) = (HashSet::new(), HashSet::new());
        for side in [a, b] {
            if let Some(file) = side.outputs.get(&name) {
                let (more, ran) = side.behind(store, file)?;
                paths.extend(more);
                activities.extend(ran);
            }
        }
        differences[at].fed_by = (0..differences.len())
            .filter(|&from| from != at && differences[from].kind < DifferenceKind::Exit)
            .filter(|&from| {
                let from = &differences[from];
                from.paths.iter().any(|path| paths.contains(path))
                    || from.activities.iter().any(|ran| activities.contains(ran))
            })
            .collect();
    }
    Ok(())
}

/// Variables that carry no information: the shell sets them for each command, or they name the
/// directory, which is compared by itself.
const NOISE: [&[u8]; 4] = [b"_", b"PWD", b"OLDPWD", b"SHLVL"];

fn variables<'v>(pairs: &'v [Bytes]) -> BTreeMap<&'v [u8], &'v [u8]> {
    let split = |pair: &'v Bytes| {
        let at = pair.iter().position(|&byte| byte == b'=')?;
        Some((&pair[..at], &pair[at + 1..]))
    };
    let all = pairs.iter().filter_map(split);
    all.filter(|(name, _)| !NOISE.contains(name)).collect()
}

fn surroundings(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    let (Some(x), Some(y)) = (a.runs.last(), b.runs.last()) else {
        return;
    };
    // A version that no program made does not depend on the machine.
    if a.commands.is_empty() || b.commands.is_empty() {
        return;
    }
    let machine = [
        ("kernel", &x.machine.kernel, &y.machine.kernel),
        (
            "distribution",
            &x.machine.distribution,
            &y.machine.distribution,
        ),
        ("processor", &x.machine.cpu, &y.machine.cpu),
    ];
    for (what, a, b) in machine.into_iter().filter(|(_, a, b)| a != b) {
        let (a, b) = (a.clone().into_bytes(), b.clone().into_bytes());
        found.differences.push(Difference::new(
            DifferenceKind::Machine,
            what,
            Some(a),
            Some(b),
            0,
        ));
    }
    let (was, is) = (variables(&x.environment), variables(&y.environment));
    let names: std::collections::BTreeSet<&[u8]> = was.keys().chain(is.keys()).copied().collect();
    for name in names {
        let (a, b) = (was.get(name), is.get(name));
        if a != b {
            let own = |value: Option<&&[u8]>| value.map(|value| value.to_vec());
            found.differences.push(Difference::new(
                DifferenceKind::Environment,
                name,
                own(a),
                own(b),
                0,
            ));
        }
    }
}
