//! The schemas of extended records, which a user registers for types and versions.
//!
//! In: the directory `schemas` of a store. It has a file `TYPE@VERSION.json` for each schema. Out:
//! the schema for the type that a program stated.
//!
//! Invariant: a registered version is never changed. It is removed, or another is added.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_graph::marks::record_type;
use backstory_store::Home;

/// The most bytes of a schema.
pub const LONGEST: u64 = 64 << 10;

/// The longest name of a file, less what is written beside it.
const LONGEST_NAME: usize = 200;

/// A type and a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaName {
    /// The type.
    pub kind: String,
    /// The version, from 1.
    pub version: u32,
}

impl std::fmt::Display for SchemaName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.kind, self.version)
    }
}

/// A type, and a version if the text has one.
pub fn parse(text: &str) -> Option<(String, Option<u32>)> {
    let (kind, version) = record_type(text.as_bytes()).filter(|_| text.len() <= LONGEST_NAME)?;
    Some((std::str::from_utf8(kind).ok()?.to_owned(), version))
}

/// The registered schemas of a store.
#[derive(Debug, Default)]
pub struct SchemaRegistry {
    directory: PathBuf,
    versions: BTreeMap<String, Vec<u32>>,
}

impl SchemaRegistry {
    /// Reads the names of the schemas. A store without any has no directory.
    pub fn load(home: &Home) -> io::Result<SchemaRegistry> {
        let mut all = SchemaRegistry {
            directory: home.dir().join("schemas"),
            ..SchemaRegistry::default()
        };
        let entries = match fs::read_dir(&all.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            if let Some((kind, Some(version))) = stem.and_then(parse) {
                all.versions.entry(kind).or_default().push(version);
            }
        }
        all.versions
            .values_mut()
            .for_each(|versions| versions.sort_unstable());
        Ok(all)
    }

    /// True if no type has a schema.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = SchemaName> {
        self.versions.iter().flat_map(|(kind, versions)| {
            versions.iter().map(|&version| SchemaName {
                kind: kind.clone(),
                version,
            })
        })
    }

    /// The versions of a type, in order.
    pub fn versions(&self, kind: &str) -> &[u32] {
        self.versions.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The schema for a stated type: the stated version, or the newest. `None` if the type has no
    /// schema. The version may be one that is not registered.
    pub fn schema_for(&self, stated: &[u8]) -> Option<SchemaName> {
        let (kind, version) = record_type(stated)?;
        let kind = std::str::from_utf8(kind).ok()?;
        let newest = *self.versions.get(kind)?.last()?;
        Some(SchemaName {
            kind: kind.to_owned(),
            version: version.unwrap_or(newest),
        })
    }

    /// The file of a schema.
    pub fn path(&self, name: &SchemaName) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// The text of a schema.
    pub fn text(&self, name: &SchemaName) -> io::Result<String> {
        read(regular::open(self.path(name))?)
    }

    /// Registers a schema under a new name.
    pub fn add(&self, name: &SchemaName, text: &str) -> io::Result<()> {
        let mut directory = DirBuilder::new();
        directory.recursive(true).mode(0o700);
        directory.create(&self.directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(self.path(name))?;
        Ok(())
    }

    /// Removes a schema.
    pub fn remove(&self, name: &SchemaName) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }
}

/// Reads a schema from a file, or from standard input for `-`.
pub fn read_source(path: &Path) -> io::Result<String> {
    match path == Path::new("-") {
        true => read(io::stdin().lock()),
        false => read(regular::open(path)?),
    }
}

fn read(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let why = format!("a schema has at most {} KiB", LONGEST >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}
