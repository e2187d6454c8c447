//! Makes seals: of runs as they are, and of what is lawfully removed.
//!
//! Invariant: the note about a removal is durable before the removal begins. The chain is locked
//! until it ends. So no process seals or verifies a run that another one removes. A removal that
//! was killed is no fault.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use backstory_exchange::signature;
use backstory_files::{Digest, now};
use backstory_store::{Home, Store};

use crate::chain::{Chain, Head, OpenChain};
use crate::items::{self, Journals};
use crate::seal::Seal;
use crate::statement::{Statement, Subject};
use crate::{Error, Result, parts, time_stamp};

/// The signer of new seals, and the authority that stamps them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signing {
    /// An SSH key: a private key, or a public one whose private key an agent has.
    pub key: Option<PathBuf>,
    /// The address of a time-stamping authority (RFC 3161).
    pub tsa: Option<String>,
}

/// Adds seals to the chain of a store.
#[derive(Debug)]
pub struct Sealer<'a> {
    home: &'a Home,
    chain: OpenChain,
    signing: &'a Signing,
    /// The fingerprint of the key.
    key: Option<String>,
}

impl<'a> Sealer<'a> {
    /// Opens the chain of a store. Other processes wait until this one is dropped.
    pub fn open(home: &'a Home, signing: &'a Signing) -> Result<Sealer<'a>> {
        let key = signing.key.as_deref();
        let key = key.map(signature::fingerprint_of_key).transpose()?;
        Ok(Sealer {
            home,
            chain: Chain::of(home).extend()?,
            signing,
            key,
        })
    }

    /// The runs whose last seal says that they were there.
    pub fn sealed_runs(&self) -> Result<BTreeSet<String>> {
        Chain::of(self.home).sealed_runs()
    }

    /// Seals a run. The run and the facts about its files are complete. `None` if the run was
    /// removed.
    pub fn seal(
        &mut self,
        store: &dyn Store,
        run: &str,
        journals: &Journals,
    ) -> Result<Option<Head>> {
        let _one_state = store.reading()?;
        let Some(record) = store.run(run)? else {
            return Ok(None);
        };
        let (parts, items) = parts::of_run(self.home, store, &record, journals)?;
        let lines: Vec<String> = items.into_iter().map(|item| item.line).collect();
        self.add(run, Subject::Run(Box::new(parts)), &lines)
            .map(Some)
    }

    /// The last seal of the chain.
    pub fn head(&self) -> Head {
        self.chain.last
    }

    fn add(&mut self, run: &str, subject: Subject, items: &[String]) -> Result<Head> {
        add(
            &mut self.chain,
            self.signing,
            self.key.as_deref(),
            (run, subject),
            items,
        )
    }
}

/// Adds a seal: makes its statement, signs and stamps it.
fn add(
    chain: &mut OpenChain,
    signing: &Signing,
    fingerprint: Option<&str>,
    (run, subject): (&str, Subject),
    items: &[String],
) -> Result<Head> {
    let statement = Statement {
        number: chain.last.number.saturating_add(1),
        before: chain.last.digest,
        at: now(),
        run: run.to_owned(),
        subject,
        key: fingerprint.map(str::to_owned),
        tsa: signing.tsa.clone(),
    };
    let text = statement.text();
    let key = signing.key.as_deref();
    let signature = key.map(|key| signature::sign(key, &text)).transpose()?;
    let tsa = signing.tsa.as_deref();
    let stamp = tsa
        .map(|tsa| time_stamp::request(tsa, text.as_bytes()))
        .transpose()?;
    let seal = Seal {
        path: PathBuf::new(),
        statement,
        signature,
        stamp,
    };
    chain.add(seal, items)?;
    Ok(chain.last)
}

/// Notes in the chain about what is removed next. Other processes wait until this one is dropped.
///
/// A removal is never refused for want of a signature: a user may forget a run while the key is
/// away. A later signed seal confirms the note.
#[derive(Debug)]
pub struct Notes {
    chain: OpenChain,
    closed: Chain,
    signing: Signing,
    key: Option<String>,
    /// Why notes are not signed although a key or an authority is configured.
    pub unsigned: Option<String>,
}

impl Notes {
    /// Opens the chain, which exists.
    pub fn open(home: &Home, signing: Signing) -> Result<Notes> {
        let closed = Chain::of(home);
        Ok(Notes {
            chain: closed.extend()?,
            closed,
            signing,
            key: None,
            unsigned: None,
        })
    }

    fn go_on_unsigned(&mut self, why: &Error) {
        self.signing = Signing::default();
        self.key = None;
        self.unsigned = Some(backstory_vocabulary::error_chain(why));
    }

    /// Notes that a run is removed, if it is sealed. Removes the lists of its items.
    pub fn removed(&mut self, run: &str) -> Result<()> {
        let mut named = self.closed.paths()?;
        named.retain(|(_, sealed, _)| sealed == run);
        let Some((.., last)) = named.last() else {
            return Ok(());
        };
        let last = self.closed.seal(last);
        if !last.is_ok_and(|seal| seal.statement.subject == Subject::Removed) {
            self.add(run, &Subject::Removed, &[])?;
        }
        for (.., path) in &named {
            let _ = std::fs::remove_file(path.with_extension("items"));
        }
        Ok(())
    }

    /// Notes for each sealed run that its files with these contents become unknown.
    pub fn forgot(
        &mut self,
        home: &Home,
        store: &dyn Store,
        contents: &HashSet<Digest>,
    ) -> Result<()> {
        let sealed = self.closed.sealed_runs()?;
        for run in store.runs()? {
            if !sealed.contains(&run.header.id) {
                continue;
            }
            let lines = items::about_contents(home, store, &run, contents)?;
            if !lines.is_empty() {
                let list = items::digest_of_list(lines.iter().map(String::as_str));
                self.add(&run.header.id, &Subject::Forgot(list), &lines)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, run: &str, subject: &Subject, items: &[String]) -> Result<()> {
        match self.try_add(run, subject, items) {
            Err(error) if self.signing != Signing::default() => {
                self.go_on_unsigned(&error);
                self.try_add(run, subject, items)
            }
            done => done,
        }
    }

    fn try_add(&mut self, run: &str, subject: &Subject, items: &[String]) -> Result<()> {
        // The key is looked at for the first note: most removals need none.
        if self.key.is_none()
            && let Some(key) = &self.signing.key
        {
            self.key = Some(signature::fingerprint_of_key(key)?);
        }
        let about = (run, subject.clone());
        let key = self.key.as_deref();
        add(&mut self.chain, &self.signing, key, about, items).map(drop)
    }
}
