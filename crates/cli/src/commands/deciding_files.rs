//! The files that an account of steps lacks: they decided on the subject, or the subject decided on
//! them.
//!
//! In: an account, and the influence that `status` judges. Out: [`DecidingFiles`] for the screen,
//! the list of sources and JSON. Steps show how content flowed. A source may also reach a result
//! through the words of a command, a condition or a look-up.

use std::collections::HashSet;
use std::path::Path;

use backstory_account::Account;
use backstory_currency::{self as currency, InfluencingFile};
use backstory_eventlog::event::Bytes;
use backstory_store::{EntityKey, Store};
use backstory_workflow::ownership::{FileOwner, Ownership};
use backstory_workflow::paths::{is_record, is_system};

use crate::error::Failure;
use crate::json::Value;
use crate::text::account::{Sheet, name};
use crate::text::shell;
use crate::text::words::Direction;

/// The words of a program that are shown.
const WORDS: usize = 40;

/// The files that steps do not show.
#[derive(Debug, Default)]
pub struct DecidingFiles {
    direction: Option<Direction>,
    files: Vec<InfluencingFile>,
}

impl DecidingFiles {
    /// Finds them for the subject of an account: the versions, or the file at the path.
    pub fn of(
        store: &dyn Store,
        (account, ownership): (&Account, &mut Ownership),
        versions: &[EntityKey],
        path: Option<&Path>,
        direction: Direction,
    ) -> Result<DecidingFiles, Failure> {
        let mut files = match (direction, path) {
            (Direction::Of, _) => currency::sources(store, versions)?,
            (Direction::Uses, Some(path)) => currency::influenced(store, path)?,
            (Direction::Uses, None) => Vec::new(),
        };
        let steps = account.chain.iter().chain(&account.drivers);
        let shown: HashSet<&Bytes> = match direction {
            Direction::Of => {
                let sources = steps.flat_map(|&at| account.sources(at));
                sources.map(|file| &account.files[file].path).collect()
            }
            Direction::Uses => {
                let made = steps.flat_map(|&at| &account.commands[at].writes);
                made.map(|&file| &account.files[file].path).collect()
            }
        };
        files.retain(|file| !shown.contains(&file.path) && is_told(ownership, &file.path));
        Ok(DecidingFiles {
            direction: Some(direction),
            files,
        })
    }

    /// The lines below the steps.
    pub fn lines(&self, sheet: Sheet<'_>) -> Vec<String> {
        let (read, decided): (Vec<_>, Vec<_>) = self.files.iter().partition(|file| file.is_read);
        let leads = match self.direction {
            Some(Direction::Uses) => ("also in: ", "decides on: "),
            _ => ("also from: ", "decided by: "),
        };
        let mut lines = Vec::new();
        for (lead, files) in [(leads.0, read), (leads.1, decided)] {
            if !files.is_empty() {
                let texts: Vec<String> = files.iter().map(|file| text(file, sheet)).collect();
                lines.push(format!("{lead}{}", texts.join(", ")));
            }
        }
        lines
    }

    /// One line a file, for the list of sources.
    pub fn listed(&self, sheet: Sheet<'_>) -> Vec<String> {
        let lines = self.files.iter().map(|file| match file.is_read {
            true => name(&file.path, sheet),
            false => {
                let by = words(file);
                format!("{}  (decided, {by})", name(&file.path, sheet))
            }
        });
        lines.collect()
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let files = self.files.iter().map(|file| {
            let how = if file.is_read { "read" } else { "decided" };
            Value::Object(vec![
                ("path", (&file.path).into()),
                ("how", how.into()),
                ("by", Value::array(&file.by)),
            ])
        });
        Value::Array(files.collect())
    }
}

/// True for a file that a person may have made: no package has it, and no tool keeps records in it.
fn is_told(ownership: &mut Ownership, path: &[u8]) -> bool {
    match ownership.owner(path) {
        FileOwner::User => true,
        FileOwner::Cache => !path.ends_with(b".pyc") && !is_record(path),
        FileOwner::System => !is_system(path),
        FileOwner::Package(_) | FileOwner::Temporary => false,
    }
}

fn text(file: &InfluencingFile, sheet: Sheet<'_>) -> String {
    format!("{} ({})", name(&file.path, sheet), words(file))
}

fn words(file: &InfluencingFile) -> String {
    let words = shell::words(file.by.iter().map(|word| &**word));
    crate::text::line::excerpt(&words, WORDS)
}
