//! The stored contents of a run's files, as `files` and `show` print them.

use std::collections::HashMap;

use backstory_contents::Contents;
use backstory_eventlog::event::Bytes;
use backstory_graph::model::EntityKind;
use backstory_query as query;
use backstory_query::{Content, ContentRole, RunContents};
use backstory_store::Store;
use backstory_store::facts::Availability;

use crate::current_store::CurrentStore;
use crate::json::Value;

/// Which contents of one run are stored.
pub struct StoredContents {
    /// True once all files of the run were examined. Contents are stored in the background.
    pub settled: bool,
    /// Versions whose content is stored, or was left in another store that has it.
    pub kept: usize,
    /// Versions whose content belongs to an installed package.
    pub packages: usize,
    /// Paths of versions whose content is lost, and why.
    pub missing: Vec<(Bytes, String)>,
    /// Versions whose content is known, in the order of their first use.
    pub versions: Vec<Content>,
}

/// The stored contents of a run that was recorded with `--contents`.
pub fn of_contents(current: &CurrentStore, contents: RunContents) -> query::Result<StoredContents> {
    let other_stores = Contents::open(&current.home.contents_dir());
    let other_stores = other_stores.ok().filter(Contents::has_places);
    let mut all = StoredContents {
        settled: contents.settled,
        kept: 0,
        packages: 0,
        missing: Vec::new(),
        versions: Vec::new(),
    };
    let files = contents.files.into_iter();
    for file in files.filter(|file| file.kind == EntityKind::File) {
        let lost = match (&other_stores, &file.digest) {
            (Some(contents), Some(digest)) if file.availability.is_stored() => {
                contents.lost(digest).ok().flatten()
            }
            _ => None,
        };
        match &file.availability {
            Availability::Stored | Availability::StoredPackage(_) => match lost {
                Some(why) => all.missing.push((file.path.clone(), why)),
                None => all.kept += 1,
            },
            Availability::Package(_) => all.packages += 1,
            // A version that the run wrote, did not read and changed again is not meant to be
            // stored.
            Availability::Missing(_)
                if !contents.settled || !was_wanted(&current.store, &file)? => {}
            Availability::Missing(why) => all.missing.push((file.path.clone(), why.clone())),
        }
        if file.digest.is_some() {
            all.versions.push(file);
        }
    }
    Ok(all)
}

fn was_wanted(store: &dyn Store, file: &Content) -> query::Result<bool> {
    let known = query::known(store, file.ident.as_ref())?;
    Ok(known.is_some() || file.ident.is_none() && file.role != ContentRole::Intermediate)
}

impl StoredContents {
    /// For `show --json`.
    pub fn json(&self) -> Value {
        let missing = self.missing.iter().map(|(path, why)| {
            Value::Object(vec![
                ("path", path.into()),
                ("because", why.as_str().into()),
            ])
        });
        Value::Object(vec![
            ("settled", self.settled.into()),
            ("kept", self.kept.into()),
            ("in_packages", self.packages.into()),
            ("not_kept", Value::Array(missing.collect())),
            (
                "versions",
                Value::Array(self.versions.iter().map(named).collect()),
            ),
        ])
    }

    /// True if a content is not stored, or not yet.
    pub fn is_lacking(&self) -> bool {
        !self.settled || !self.missing.is_empty()
    }

    /// `12 stored, 40 in packages`
    pub fn text(&self) -> String {
        match self.settled {
            false => "not stored yet (`backstory index --wait` stores them now)".to_owned(),
            true => format!("{} stored, {} in packages", self.kept, self.packages),
        }
    }
}

/// The versions of each path whose digest is known, in the order of their first use.
pub struct Versions(HashMap<Bytes, Vec<Content>>);

impl Versions {
    /// The versions of a run.
    pub fn of_run(store: &dyn Store, run: &str) -> query::Result<Versions> {
        let mut by_path: HashMap<Bytes, Vec<Content>> = HashMap::new();
        for file in query::contents(store, run)?.files {
            if file.digest.is_some() {
                for path in std::iter::once(&file.path).chain(&file.aliases) {
                    by_path.entry(path.clone()).or_default().push(file.clone());
                }
            }
        }
        Ok(Versions(by_path))
    }

    /// For `files --json`.
    pub fn json(&self, path: &Bytes) -> Value {
        let one = |file: &Content| Value::Object(fields(file).to_vec());
        Value::Array(self.0.get(path).into_iter().flatten().map(one).collect())
    }
}

/// The fields of a version in JSON.
fn fields(file: &Content) -> [(&'static str, Value); 5] {
    let package = file.availability.package().map(|package| {
        Value::Object(vec![
            ("manager", package.manager.as_str().into()),
            ("name", package.name.as_str().into()),
            ("version", package.version.as_str().into()),
            ("verified", package.verified.into()),
        ])
    });
    [
        ("version", file.version.into()),
        ("digest", file.digest.into()),
        ("kept", file.availability.is_stored().into()),
        ("last", file.last.into()),
        ("package", package.into()),
    ]
}

/// The fields of a version, after its path.
fn named(file: &Content) -> Value {
    let path = ("path", Value::from(&file.path));
    Value::Object(std::iter::once(path).chain(fields(file)).collect())
}
