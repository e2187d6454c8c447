//! Compares a store with its seals.
//!
//! In: a store, its chain, and what the user trusts. Out: findings. Each names the run, if it is
//! about one, and the part.
//!
//! Invariant: the chain is locked, and the database is read in one state. So a run that another
//! process seals or removes at the same time is no fault.

mod run_parts;
mod seals;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use backstory_contents::Contents;
use backstory_exchange::AllowedSigners;
use backstory_files::Digest;
use backstory_store::{Home, Store};

use crate::chain::{Chain, Head};
use crate::items::Journals;
use crate::seal::Seal;
use crate::statement::{PART_WORDS, Subject};
use crate::{Error, Result};
use seals::Change;

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
    /// A run or its contents were removed by a command that left its note in the chain.
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
    /// When it happened, in ns since 1970, as a seal says.
    pub at: Option<i64>,
}

/// The result of a verification.
#[derive(Debug, Default)]
pub struct Examination {
    /// The findings, sorted.
    pub findings: Vec<Finding>,
    /// The runs that are as they were sealed, but for what was lawfully removed.
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
    let _held = chain.hold();
    let _one_state = match &examined.store {
        Ok(store) => Some(store.reading()?),
        Err(_) => None,
    };
    let mut found = Findings::default();
    let (seals, changes) = seals::examine(&chain, trust, &mut found)?;
    let mut result = Examination {
        seals: seals.len(),
        head: seals.last().map(|seal| Head {
            number: seal.statement.number,
            digest: seal.digest(),
        }),
        ..Examination::default()
    };
    let mut by_run: BTreeMap<&str, Vec<&Seal>> = BTreeMap::new();
    let mut notes: Vec<&Seal> = Vec::new();
    for seal in &seals {
        match seal.statement.subject {
            Subject::Forgot(_) => notes.push(seal),
            _ => by_run.entry(&seal.statement.run).or_default().push(seal),
        }
    }
    let journals = match Journals::read(examined.home) {
        Ok(journals) => Ok(journals),
        Err(error) => Err(backstory_vocabulary::error_chain(&error)),
    };
    let mut contents = StoredContents::open(examined.home)?;
    let confirmation = Confirmation {
        seals: &seals,
        trust,
    };
    for (run, seals) in &by_run {
        let before = found.faults_of(run);
        let first = found.0.len();
        if let Some(seal) = seals.last() {
            match &seal.statement.subject {
                Subject::Removed => removed(examined, seal, &confirmation, &mut found)?,
                Subject::Forgot(_) => {}
                Subject::Run(parts) => {
                    run_parts::same_files(seals, &mut found);
                    came_back(seals, &confirmation, &mut found)?;
                    let mut forgotten = Vec::new();
                    for note in &notes {
                        let is_later = note.statement.number > seal.statement.number;
                        if note.statement.run == *run && is_later {
                            confirmation.examine(note, &mut found)?;
                            forgotten.push(*note);
                        }
                    }
                    let sealed = run_parts::SealedRun {
                        seal,
                        parts,
                        forgotten,
                    };
                    sealed.examine(examined, &journals, &mut contents, &mut found)?;
                    if found.faults_of(run) == before && before == 0 {
                        result.intact.push((*run).to_owned());
                    }
                }
            }
        }
        found.doubt(first, seals, &changes);
        done();
    }
    if let Ok(store) = &examined.store {
        let mut runs: Vec<String> = store.run_ids()?.into_iter().collect();
        runs.retain(|run| !by_run.contains_key(run.as_str()));
        runs.sort_unstable();
        result.unsealed = runs;
    }
    found
        .0
        .sort_unstable_by(|one, other| place(one).cmp(&place(other)));
    found.0.dedup();
    result.findings = found.0;
    Ok(result)
}

/// The place of a finding among all. A seal comes before the parts that it names.
fn place(one: &Finding) -> (Weight, Option<&str>, Option<u64>, bool, &Finding) {
    let is_part = one.part != "seal";
    (one.weight, one.run.as_deref(), one.seal, is_part, one)
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
            at: None,
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

    /// A loss that a note in the chain explains.
    fn removed(&mut self, note: &Seal, part: &str, what: impl Into<String>) {
        self.0.push(Finding {
            weight: Weight::Removed,
            run: Some(note.statement.run.clone()),
            seal: Some(note.statement.number),
            part: part.to_owned(),
            what: what.into(),
            at: Some(note.statement.at),
        });
    }

    /// A note about what a seal names.
    fn note(&mut self, seal: &Seal, part: &str, what: impl Into<String>) {
        let of = (
            Some(seal.statement.run.as_str()),
            Some(seal.statement.number),
        );
        self.add(Weight::Note, of, part, what);
    }

    /// Says of parts that differ from a changed seal that the seal alone can be wrong. The findings
    /// from `first` on are about the run of these seals.
    fn doubt(&mut self, first: usize, seals: &[&Seal], changes: &HashMap<PathBuf, Change>) {
        let mut newest = seals.iter().rev();
        let changed = newest.find_map(|seal| Some((*seal, *changes.get(&seal.path)?)));
        let Some((seal, change)) = changed else {
            return;
        };
        let mut is_doubted = false;
        for one in &mut self.0[first..] {
            let differs = one.part == "run" || PART_WORDS.contains(&one.part.as_str());
            if one.weight == Weight::Fault && differs {
                one.what.push_str("; or only a seal was changed");
                is_doubted = true;
            }
        }
        if is_doubted && change == Change::Possible {
            let what = "is another one than `head` or the next seal names: one was changed";
            self.fault(seal, "seal", what);
        }
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

/// Notes about removals may lack a signature. A later seal of an allowed signer confirms them.
struct Confirmation<'s> {
    seals: &'s [Seal],
    trust: &'s Trust,
}

impl Confirmation<'_> {
    /// A note without a signature is a fault if signers are given, and nothing confirms it.
    fn examine(&self, note: &Seal, found: &mut Findings) -> Result<()> {
        let statement = &note.statement;
        if statement.key.is_some() {
            return Ok(());
        }
        let later = |seal: &&Seal| seal.statement.number > statement.number;
        for seal in self.seals.iter().filter(later) {
            if seal.statement.key.is_some() && seals::signer(seal, self.trust)?.is_ok() {
                let number = seal.statement.number;
                let what = format!("the note is not signed, and seal {number} confirms it");
                found.note(note, "removal", what);
                return Ok(());
            }
        }
        match self.trust.signers {
            None => found.note(note, "removal", "the note is not signed"),
            Some(_) => {
                let what =
                    "the note is not signed, and no later seal of an allowed signer confirms it";
                found.fault(note, "removal", what);
            }
        }
        Ok(())
    }
}

/// The findings about a run that is sealed, and that earlier notes name as removed.
fn came_back(seals: &[&Seal], confirmation: &Confirmation<'_>, found: &mut Findings) -> Result<()> {
    let is_note = |seal: &&&Seal| seal.statement.subject == Subject::Removed;
    for &note in seals.iter().filter(is_note) {
        confirmation.examine(note, found)?;
        let what = "was removed by `rm`, `forget` or `gc`, and came back before the last seal";
        found.removed(note, "run", what);
    }
    Ok(())
}

/// The findings about a run that was lawfully removed.
fn removed(
    examined: &Examined<'_>,
    note: &Seal,
    confirmation: &Confirmation<'_>,
    found: &mut Findings,
) -> Result<()> {
    confirmation.examine(note, found)?;
    found.removed(note, "run", "was removed by `rm`, `forget` or `gc`");
    if let Ok(store) = &examined.store
        && store.run(&note.statement.run)?.is_some()
    {
        found.note(note, "run", "is in the store, and is not sealed");
    }
    Ok(())
}
