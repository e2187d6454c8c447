//! Compares a store with its seals.
//!
//! In: a store, its chain, and what the user trusts. Out: findings. Each names the run, if it is
//! about one, and the part.

mod run_parts;
mod seals;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use backstory_contents::Contents;
use backstory_exchange::AllowedSigners;
use backstory_files::Digest;
use backstory_store::{Home, Store};

use crate::chain::{Chain, Head, Seal};
use crate::items::Journals;
use crate::statement::Subject;
use crate::{Error, Result};

/// The parts of a verification that do not come from the store.
#[derive(Debug, Default)]
pub struct Trust {
    /// Only seals of these signers count.
    pub signers: Option<AllowedSigners>,
    /// The certificates of the time-stamping authorities.
    pub authorities: Option<PathBuf>,
    /// A seal that was noted elsewhere: the chain must have it.
    pub expected: Option<Head>,
}

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Something that was sealed is not as it was.
    Fault,
    /// A run was removed by a command that left its note in the chain.
    Removed,
    /// The user should know, and nothing is wrong.
    Note,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How it is to be taken.
    pub weight: Weight,
    /// The run's id. `None` if it is about the chain as a whole.
    pub run: Option<String>,
    /// The number of the seal.
    pub seal: Option<u64>,
    /// The part: a word of [`crate::statement::PART_WORDS`], or another one of
    /// `docs/formats/seal.md`.
    pub part: String,
    /// A clause that goes on after "run ID: part".
    pub what: String,
}

/// The result of a verification.
#[derive(Debug, Default)]
pub struct Examination {
    /// The findings, sorted.
    pub findings: Vec<Finding>,
    /// The runs that are as they were sealed.
    pub intact: Vec<String>,
    /// The runs that no seal names.
    pub unsealed: Vec<String>,
    /// The number of seals.
    pub seals: usize,
    /// The last seal.
    pub head: Option<Head>,
}

impl Examination {
    /// True if nothing that was sealed is other than it was.
    pub fn is_sound(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.weight != Weight::Fault)
    }
}

/// The open parts of a store that an examination reads.
pub struct Examined<'s> {
    /// The directory.
    pub home: &'s Home,
    /// The database, or why it cannot be read.
    pub store: std::result::Result<&'s dyn Store, String>,
}

/// Examines all seals of a store, and all runs that they name. `done` is called after each run.
///
/// Errors: if a program that verifies cannot be started. Damage is no error but a finding.
pub fn examine(
    examined: &Examined<'_>,
    trust: &Trust,
    done: &mut dyn FnMut(),
) -> Result<Examination> {
    let chain = Chain::of(examined.home);
    let mut found = Findings::default();
    let seals = seals::examine(&chain, trust, &mut found)?;
    let mut result = Examination {
        seals: seals.len(),
        head: seals.last().map(|seal| Head {
            number: seal.statement.number,
            digest: seal.digest(),
        }),
        ..Examination::default()
    };
    let mut by_run: BTreeMap<&str, Vec<&Seal>> = BTreeMap::new();
    for seal in &seals {
        by_run.entry(&seal.statement.run).or_default().push(seal);
    }
    let journals = match Journals::read(examined.home) {
        Ok(journals) => Ok(journals),
        Err(error) => Err(backstory_vocabulary::error_chain(&error)),
    };
    let mut contents = StoredContents::open(examined.home)?;
    for (run, seals) in &by_run {
        let before = found.faults_of(run);
        if let Some(seal) = seals.last() {
            match &seal.statement.subject {
                Subject::Removed => removed(
                    examined,
                    seal,
                    &seals_after(seal, &by_run),
                    trust,
                    &mut found,
                )?,
                Subject::Run(parts) => {
                    run_parts::same_files(seals, &mut found);
                    let sealed = run_parts::SealedRun { seal, parts };
                    sealed.examine(examined, &journals, &mut contents, &mut found)?;
                    if found.faults_of(run) == before && before == 0 {
                        result.intact.push((*run).to_owned());
                    }
                }
            }
        }
        done();
    }
    if let Ok(store) = &examined.store {
        let mut runs: Vec<String> = store.run_ids()?.into_iter().collect();
        runs.retain(|run| !by_run.contains_key(run.as_str()));
        runs.sort_unstable();
        result.unsealed = runs;
    }
    found.0.sort_unstable();
    found.0.dedup();
    result.findings = found.0;
    Ok(result)
}

/// All findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(
        &mut self,
        weight: Weight,
        (run, seal): (Option<&str>, Option<u64>),
        part: &str,
        what: impl Into<String>,
    ) {
        self.0.push(Finding {
            weight,
            run: run.map(str::to_owned),
            seal,
            part: part.to_owned(),
            what: what.into(),
        });
    }

    /// A fault of what a seal names.
    fn fault(&mut self, seal: &Seal, part: &str, what: impl Into<String>) {
        let of = (
            Some(seal.statement.run.as_str()),
            Some(seal.statement.number),
        );
        self.add(Weight::Fault, of, part, what);
    }

    fn faults_of(&self, run: &str) -> usize {
        let of_run = |one: &&Finding| one.run.as_deref() == Some(run);
        let faults = self.0.iter().filter(of_run);
        faults.filter(|one| one.weight == Weight::Fault).count()
    }
}

/// The stored contents, each read at most once.
struct StoredContents {
    contents: Option<Contents>,
    read: HashMap<Digest, Option<String>>,
}

impl StoredContents {
    fn open(home: &Home) -> Result<StoredContents> {
        let contents = match Contents::open(&home.contents_dir()) {
            Ok(contents) => Some(contents),
            Err(backstory_contents::Error::None(_)) => None,
            Err(error) => return Err(Error::Contents(error)),
        };
        Ok(StoredContents {
            contents,
            read: HashMap::new(),
        })
    }

    /// Why a content cannot be read. `None` if its bytes are what its digest names.
    fn damage(&mut self, digest: &Digest) -> Option<String> {
        if let Some(known) = self.read.get(digest) {
            return known.clone();
        }
        let damage = match &self.contents {
            None => Some("the store has no contents any more".to_owned()),
            Some(contents) => match contents.read(digest) {
                Err(error) => Some(backstory_vocabulary::error_chain(&error)),
                Ok(mut object) => std::io::copy(&mut object, &mut std::io::sink())
                    .err()
                    .map(|error| error.to_string()),
            },
        };
        self.read.insert(*digest, damage.clone());
        damage
    }
}

/// The seals that were made after one, by number.
fn seals_after<'s>(seal: &Seal, by_run: &BTreeMap<&str, Vec<&'s Seal>>) -> Vec<&'s Seal> {
    let all = by_run.values().flatten().copied();
    all.filter(|other| other.statement.number > seal.statement.number)
        .collect()
}

/// The finding about a run that was lawfully removed.
fn removed(
    examined: &Examined<'_>,
    seal: &Seal,
    later: &[&Seal],
    trust: &Trust,
    found: &mut Findings,
) -> Result<()> {
    let run = seal.statement.run.as_str();
    let of = (Some(run), Some(seal.statement.number));
    let mut what = "was removed by `rm`, `forget` or `gc`".to_owned();
    if seal.statement.key.is_none() {
        let mut confirmed = None;
        for later in later {
            if later.statement.key.is_some() && seals::signer(later, trust)?.is_ok() {
                confirmed = Some(later.statement.number);
                break;
            }
        }
        match confirmed {
            Some(number) => {
                what += &format!("; the note is not signed, and seal {number} confirms it")
            }
            None => what += "; the note is not signed",
        }
        if confirmed.is_none() && trust.signers.is_some() {
            let what = "the note about its removal is not signed, and no later seal of an allowed signer confirms it";
            found.add(Weight::Fault, of, "removal", what);
        }
    }
    found.add(Weight::Removed, of, "run", what);
    if let Ok(store) = &examined.store
        && store.run(run)?.is_some()
    {
        let what = "is in the store again, and is not sealed";
        found.add(Weight::Note, of, "run", what);
    }
    Ok(())
}
