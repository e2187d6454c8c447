//! The chain itself: order, links, signatures, time stamps and the last seal.
//!
//! A seal that was made without a signature is judged by the later seals of its run. The next seal
//! names its digest, so that a later signature covers it, too.

use std::collections::HashMap;
use std::path::PathBuf;

use backstory_exchange::signature;
use backstory_files::Digest;
use backstory_vocabulary::error_chain;

use super::{Findings, Trust, Weight};
use crate::chain::{Chain, Head};
use crate::seal::Seal;
use crate::statement::Subject;
use crate::{Error, Result, time_stamp};

/// Why a signature or a time stamp does not count.
#[derive(Debug)]
pub enum Flaw {
    /// The seal was made without one.
    Missing(&'static str),
    /// It, or the text that it is about, was changed after the seal was made.
    Changed(&'static str),
    /// Its signer or authority is not one that the user trusts.
    Untrusted(String),
}

/// How sure it is that a seal is not as it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its signature is of another text, or a seal that is as it was made names another digest.
    Certain,
    /// `head` or the next seal names another digest, and could be wrong itself.
    Possible,
}

/// The seals of a chain that can be read, and the changed ones by the paths of their statements.
pub type Seals = (Vec<Seal>, HashMap<PathBuf, Change>);

/// If a signature or a time stamp counts.
type Verdict = std::result::Result<(), Flaw>;

/// A seal that can be read.
struct Judged {
    /// The number and the run in the name of its file.
    name: (u64, String),
    seal: Seal,
    /// For each part of [`PROOFS`].
    verdicts: [Verdict; PROOFS.len()],
}

/// The parts that show the signer of a seal, and when it was made.
const PROOFS: [&str; 2] = ["signature", "time stamp"];

/// Examines the chain. The seals are in their order.
pub fn examine(chain: &Chain, trust: &Trust, found: &mut Findings) -> Result<Seals> {
    let mut judged: Vec<Judged> = Vec::new();
    // The digest of the seal before. `None` if that seal cannot be read.
    let (mut next, mut before) = (1, Some(Digest([0; 32])));
    for (number, run, path) in chain.paths()? {
        let of = (Some(run.as_str()), Some(number));
        // One finding for a gap: the number in the name of a hostile file can be any.
        if next < number {
            let what = match number - next {
                1 => "is missing: it was removed, or has another number".to_owned(),
                _ => format!(
                    "is missing, and so are all up to seal {}: they were removed",
                    number - 1
                ),
            };
            found.add(Weight::Fault, (None, Some(next)), "chain", what);
            before = None;
        }
        if number < next {
            let what = "there are two seals with this number";
            found.add(Weight::Fault, of, "chain", what);
        }
        next = number.saturating_add(1);
        let seal = match chain.seal(&path) {
            Ok(seal) => seal,
            Err(error @ (Error::Damaged { .. } | Error::Io { .. })) => {
                found.add(Weight::Fault, of, "seal", error_chain(&error));
                before = None;
                continue;
            }
            Err(error) => return Err(error),
        };
        if (seal.statement.number, seal.statement.run.as_str()) != (number, run.as_str()) {
            let what = "the statement is that of another seal";
            found.add(Weight::Fault, of, "order", what);
        }
        if before.is_some_and(|before| before != seal.statement.before) {
            let what = format!(
                "seal {} before it is not the one that it names: one of them was changed, exchanged or signed anew",
                number.saturating_sub(1)
            );
            found.add(Weight::Fault, of, "order", what);
        }
        before = Some(seal.digest());
        judged.push(Judged {
            verdicts: [signer(&seal, trust)?, stamp(&seal, trust)?],
            name: (number, run),
            seal,
        });
    }
    proofs(&judged, found);
    let changes = changes(&judged, chain.head().ok().flatten(), found);
    let seals: Vec<Seal> = judged.into_iter().map(|one| one.seal).collect();
    head(chain, &seals, trust, found)?;
    Ok((seals, changes))
}

/// The seals that are not as they were made. Those of which it is certain are reported.
fn changes(
    judged: &[Judged],
    head: Option<Head>,
    found: &mut Findings,
) -> HashMap<PathBuf, Change> {
    let mut changes = HashMap::new();
    // The seal as `head` or the next seal names it, if the latter is as it was made, and if a
    // signature says so.
    let mut named = head.map(|head| (head, false, false));
    for one in judged.iter().rev() {
        let (number, run) = &one.name;
        let is_broken = matches!(one.verdicts[0], Err(Flaw::Changed(_)));
        let is_signed = one.seal.statement.key.is_some() && !is_broken;
        let name = named.filter(|(name, ..)| name.number == *number);
        let is_as_named = name.map(|(name, ..)| name.digest == one.seal.digest());
        // An unsigned seal cannot refute a signed one.
        let is_refuted =
            |(_, is_sure, by_signed): (Head, bool, bool)| by_signed || is_sure && !is_signed;
        let change = match is_as_named {
            _ if is_broken => Some(Change::Certain),
            Some(false) if name.is_some_and(is_refuted) => Some(Change::Certain),
            Some(false) if !is_signed => Some(Change::Possible),
            _ => None,
        };
        if let Some(change) = change {
            changes.insert(one.seal.path.clone(), change);
        }
        if change == Some(Change::Certain) {
            let of = (Some(run.as_str()), Some(*number));
            found.add(Weight::Fault, of, "seal", "was changed after it was made");
        }
        let before = Head {
            number: number.saturating_sub(1),
            digest: one.seal.statement.before,
        };
        let is_sure = change.is_none() && (is_signed || is_as_named == Some(true));
        named = Some((before, is_sure, is_signed && is_sure));
    }
    changes
}

/// Reports signatures and time stamps that do not count. A seal without one is no fault if a later
/// seal of its run has it, or says that the run was removed.
fn proofs(judged: &[Judged], found: &mut Findings) {
    for (at, part) in PROOFS.iter().enumerate() {
        // The last seal that stands for the earlier ones of its run.
        let mut standing: HashMap<&str, usize> = HashMap::new();
        for (index, one) in judged.iter().enumerate() {
            let stands = match one.seal.statement.subject {
                Subject::Run(_) => one.verdicts[at].is_ok(),
                Subject::Removed => true,
                Subject::Forgot(_) => false,
            };
            if stands {
                standing.insert(&one.seal.statement.run, index);
            }
        }
        let mut superseded = 0;
        for (index, one) in judged.iter().enumerate() {
            let what = match &one.verdicts[at] {
                Ok(()) => continue,
                Err(Flaw::Changed(what)) => *what,
                Err(Flaw::Untrusted(what)) => what.as_str(),
                Err(Flaw::Missing(what)) => {
                    let later = standing.get(one.seal.statement.run.as_str());
                    if later.is_some_and(|later| *later > index) {
                        superseded += 1;
                        continue;
                    }
                    *what
                }
            };
            let of = (Some(one.name.1.as_str()), Some(one.name.0));
            found.add(Weight::Fault, of, part, what);
        }
        let what = match superseded {
            0 => continue,
            1 => "1 seal has none, and a later seal of its run counts instead".to_owned(),
            many => format!("{many} seals have none, and later seals of their runs count instead"),
        };
        found.add(Weight::Note, (None, None), part, what);
    }
}

/// If the signature of a seal counts. A note about a removal may lack one.
pub fn signer(seal: &Seal, trust: &Trust) -> Result<Verdict> {
    let text = seal.statement.text();
    let changed = |what| Ok(Err(Flaw::Changed(what)));
    let (key, signature) = match (&seal.statement.key, &seal.signature) {
        (None, None) => {
            return Ok(match (&trust.signers, &seal.statement.subject) {
                (Some(_), Subject::Run(_)) => {
                    Err(Flaw::Missing("is missing: nobody signed the seal"))
                }
                _ => Ok(()),
            });
        }
        (Some(key), Some(signature)) => (key, signature),
        (Some(_), None) => return changed("is gone: the statement names the key that signed it"),
        (None, Some(_)) => return changed("was added: the statement names no key"),
    };
    let blocks = signature::blocks(signature.as_bytes());
    // Bytes around a signature would change the seal's digest, and no program reads them.
    if blocks.len() != 1 || blocks.concat() != *signature {
        return changed("was changed: it is not one signature of OpenSSH");
    }
    let fingerprint = signature::fingerprint_of_signer(&text, signature)?;
    if fingerprint.as_deref() != Some(key) {
        return changed("is not valid: it is of another text, or of another key");
    }
    if let Some(signers) = &trust.signers
        && signers.signer(&text, &blocks)?.is_none()
    {
        let what = "is of no allowed signer".to_owned();
        return Ok(Err(Flaw::Untrusted(what)));
    }
    Ok(Ok(()))
}

/// If the time stamp of a seal counts. A note about a removal may lack one.
fn stamp(seal: &Seal, trust: &Trust) -> Result<Verdict> {
    let changed = |what| Ok(Err(Flaw::Changed(what)));
    let stamp = match (&seal.statement.tsa, &seal.stamp) {
        (None, None) => {
            return Ok(match (&trust.authorities, &seal.statement.subject) {
                (Some(_), Subject::Run(_)) => {
                    Err(Flaw::Missing("is missing: no authority stamped the seal"))
                }
                _ => Ok(()),
            });
        }
        (Some(_), Some(stamp)) => stamp,
        (Some(_), None) => return changed("is gone: the statement names its authority"),
        (None, Some(_)) => return changed("was added: the statement names no authority"),
    };
    let Some(trusted) = &trust.authorities else {
        return Ok(Ok(()));
    };
    Ok(
        match time_stamp::verify(seal.statement.text().as_bytes(), stamp, trusted)? {
            Some(why) => Err(Flaw::Untrusted(format!("is not valid: {why}"))),
            None => Ok(()),
        },
    )
}

/// Compares the end of the chain with what `head` and the user say.
fn head(chain: &Chain, seals: &[Seal], trust: &Trust, found: &mut Findings) -> Result<()> {
    let last = seals.last();
    let number = last.map_or(0, |seal| seal.statement.number);
    let mut fault = |part: &str, what: String| {
        found.add(Weight::Fault, (None, last.map(|_| number)), part, what);
    };
    match chain.head() {
        Err(error) => fault("head", error_chain(&error)),
        Ok(None) if last.is_none() => {
            // Seals are expected, and a program can have removed all of them with `head`.
            if trust.signers.is_some() || trust.authorities.is_some() {
                let what = "there is no seal: none was made, or all of them were removed";
                fault("chain", what.to_owned());
            }
        }
        Ok(None) => fault(
            "head",
            "the file that names the last seal is gone".to_owned(),
        ),
        Ok(Some(head)) if head.number > number => fault(
            "chain",
            format!(
                "the chain was cut: it ends with seal {number}, and seal {} was made",
                head.number
            ),
        ),
        Ok(Some(head)) => {
            let named = seals
                .iter()
                .find(|seal| seal.statement.number == head.number);
            // A process that died between a seal and `head` leaves one more seal.
            let close = head.number == number || head.number.saturating_add(1) == number;
            let same = match named {
                Some(seal) => seal.digest() == head.digest,
                None => head.number == 0,
            };
            if !close || !same {
                fault(
                    "head",
                    "it does not name the last seal as it is: one of them was changed".to_owned(),
                );
            }
        }
    }
    if let Some(expected) = trust.expected {
        let there = seals.iter().any(|seal| {
            seal.statement.number == expected.number && seal.digest() == expected.digest
        });
        if !there {
            fault(
                "chain",
                format!("it lacks the expected seal {expected}: the chain was cut or made anew"),
            );
        }
    }
    Ok(())
}
