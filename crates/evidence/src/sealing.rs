//! Makes seals: of runs as they are, and of their lawful removal.

use std::path::PathBuf;

use backstory_exchange::signature;
use backstory_files::now;
use backstory_store::{Home, RunRecord, Store};

use crate::chain::{Chain, Head, OpenChain, Seal};
use crate::items::Journals;
use crate::statement::{Statement, Subject};
use crate::{Result, parts, time_stamp};

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

    /// Seals a run. The runs and the facts about its files are complete.
    pub fn seal(
        &mut self,
        store: &dyn Store,
        run: &RunRecord,
        journals: &Journals,
    ) -> Result<Head> {
        let _one_state = store.reading()?;
        let (parts, items) = parts::of_run(self.home, store, run, journals)?;
        let lines: Vec<String> = items.into_iter().map(|item| item.line).collect();
        self.add(&run.header.id, Subject::Run(Box::new(parts)), &lines)
    }

    /// The last seal of the chain.
    pub fn head(&self) -> Head {
        self.chain.last
    }

    fn add(&mut self, run: &str, subject: Subject, items: &[String]) -> Result<Head> {
        let statement = Statement {
            number: self.chain.last.number + 1,
            before: self.chain.last.digest,
            at: now(),
            run: run.to_owned(),
            subject,
            key: self.key.clone(),
            tsa: self.signing.tsa.clone(),
        };
        let text = statement.text();
        let key = self.signing.key.as_deref();
        let signature = key.map(|key| signature::sign(key, &text)).transpose()?;
        let tsa = self.signing.tsa.as_deref();
        let stamp = tsa.map(|tsa| time_stamp::request(tsa, &text)).transpose()?;
        let seal = Seal {
            path: PathBuf::new(),
            statement,
            signature,
            stamp,
        };
        self.chain.add(seal, items)?;
        Ok(self.chain.last)
    }
}

/// Writes into the chain that a run was lawfully removed, if the chain names the run. Removes the
/// lists of its items. Returns why the entry is not signed, although a key is configured.
///
/// A removal is never refused for want of a signature: a user may forget a run while the key is
/// away. A later signed seal confirms the entry.
pub fn removed(home: &Home, run: &str, signing: &Signing) -> Result<Option<String>> {
    let chain = Chain::of(home);
    let mut named = chain.paths()?;
    named.retain(|(_, sealed, _)| sealed == run);
    let Some((.., last)) = named.last() else {
        return Ok(None);
    };
    for (.., path) in &named {
        let _ = std::fs::remove_file(path.with_extension("items"));
    }
    if let Ok(seal) = chain.seal(last)
        && seal.statement.subject == Subject::Removed
    {
        return Ok(None);
    }
    let signed =
        Sealer::open(home, signing).and_then(|mut sealer| sealer.add(run, Subject::Removed, &[]));
    let Err(error) = signed else { return Ok(None) };
    let unsigned = Signing::default();
    if *signing == unsigned {
        return Err(error);
    }
    Sealer::open(home, &unsigned)?.add(run, Subject::Removed, &[])?;
    Ok(Some(backstory_vocabulary::error_chain(&error)))
}
