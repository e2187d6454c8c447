//! Asks inspectors for the commands: with the user's own inspectors, and with answers kept in the
//! store's directory.
//!
//! In: contents in memory, and the user's file `inspectors.toml` beside `tools.toml`. Out: answers.
//! A mistake in the file is a line on stderr; the built-in inspectors remain.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstory_comparison::{ContentDifference, is_text};
use backstory_files::{Digest, regular};
use backstory_inspection::worker::printable;
use backstory_inspection::{
    Answer, AnswerCache, Catalogue, ComparedContents, FormatReader, InspectionWorker,
    InspectorEntry, Question, TableKeys, Trouble,
};
use backstory_store::EntityKey;

use crate::database_rows;
use crate::error::complain;
use crate::json::Value;
use crate::tool_file;
use crate::version_contents::VersionContents;

/// The directory of kept answers, below the store's.
const KEPT: &str = "inspected";

/// The time after which no more changes are asked for: a comparison of two runs may meet a hundred
/// files.
const PATIENCE: Duration = Duration::from_secs(10);

/// Inspectors with a worker.
pub struct FileInspector {
    begun: Instant,
    catalogue: Catalogue,
    keys: TableKeys,
    cache: Option<AnswerCache>,
    formats: FormatReader,
}

impl FileInspector {
    /// The built-in inspectors and the user's. `store`: the store's directory, if there is one.
    pub fn new(store: Option<&Path>) -> FileInspector {
        let catalogue = catalogue();
        let keys = catalogue.keys().clone();
        FileInspector {
            begun: Instant::now(),
            catalogue,
            keys: keys.clone(),
            cache: store.map(|store| AnswerCache::at(kept_answers(store))),
            formats: FormatReader::new().by_keys(keys),
        }
    }

    /// The same inspectors. Rows of tables are matched by the columns `key`, if there are any.
    pub fn by_key(mut self, key: &[String]) -> FileInspector {
        self.keys = self.keys.with(key);
        self.formats = self.formats.by_keys(self.keys.clone());
        self
    }

    /// Compares two contents of a file in the terms of their format. When earlier files took too
    /// long, by lines or bytes.
    pub fn compare(&self, name: &[u8], old: &[u8], new: &[u8]) -> ComparedContents {
        let no_time = || {
            (self.begun.elapsed() >= PATIENCE).then(|| Trouble::NoTime {
                object: printable(&String::from_utf8_lossy(name)),
                seconds: PATIENCE.as_secs(),
            })
        };
        self.formats.compare_unless(name, (old, new), no_time)
    }

    /// The rows that differ between two recorded versions of a database of SQLite, or of its
    /// write-ahead log. `None` for all other files, as [`database_rows::between`], and when earlier
    /// questions took too long.
    pub fn database_rows(
        &self,
        contents: &VersionContents<'_>,
        (name, content): (&[u8], &[u8]),
        versions: (EntityKey, EntityKey),
    ) -> Option<Result<Answer, Trouble>> {
        let has_time = self.begun.elapsed() < PATIENCE;
        (has_time && self.formats.is_of_database(name, content))
            .then(|| database_rows::between(contents, &self.formats, name, versions))
            // The rows are an addition to another answer.
            .and_then(|rows| rows.ok().flatten())
    }

    /// The inspector that takes a file. `None` if none does.
    pub fn entry(&self, name: &[u8], content: &[u8]) -> Option<&InspectorEntry> {
        self.catalogue.choose(name, content)
    }

    /// True if the inspector takes a file.
    pub fn takes(&self, entry: &InspectorEntry, name: &[u8], content: &[u8]) -> bool {
        self.catalogue.takes(entry, name, content)
    }

    /// Asks an inspector about one content, or about the changes to a second one.
    ///
    /// # Errors
    /// The worker is not installed, or it gave no answer that may be shown.
    pub fn ask(
        &self,
        entry: &InspectorEntry,
        name: &[u8],
        first: &[u8],
        second: Option<&[u8]>,
    ) -> Result<Answer, Trouble> {
        let question = Question {
            name,
            first,
            second,
            key: self.key(entry, name),
        };
        let worker = InspectionWorker::find();
        let worker = worker.map_err(|directory| Trouble::no_worker(name, directory))?;
        self.ask_worker(&worker, entry, &question)
    }

    /// A kept answer about contents of these digests: of one content, or of an older and a newer
    /// one. Which inspector takes the file is not known without the content, so all are tried.
    pub fn kept(&self, name: &[u8], digests: &[Digest]) -> Option<Answer> {
        let cache = self.cache.as_ref()?;
        let digests: Vec<[u8; 32]> = digests.iter().map(|digest| digest.0).collect();
        let mut entries = self.catalogue.entries().iter();
        entries.find_map(|entry| {
            let key = match digests.len() {
                1 => &[],
                _ => self.key(entry, name),
            };
            cache.kept(entry, (name, key), &digests)
        })
    }

    /// The columns by which rows of a file are matched.
    pub fn key(&self, entry: &InspectorEntry, name: &[u8]) -> &[String] {
        self.keys.of(&entry.name, name)
    }

    /// Asks a worker, unless the answer is kept.
    ///
    /// # Errors
    /// The worker gave no answer that may be shown.
    pub fn ask_worker(
        &self,
        worker: &InspectionWorker,
        entry: &InspectorEntry,
        question: &Question<'_>,
    ) -> Result<Answer, Trouble> {
        match &self.cache {
            Some(cache) => cache.ask(worker, entry, question),
            None => worker.ask(entry, question),
        }
    }

    /// True if an inspector of the user's own takes a file.
    pub fn is_users(&self, name: &[u8], content: &[u8]) -> bool {
        self.entry(name, content)
            .is_some_and(InspectorEntry::is_users)
    }

    /// Asks an inspector about the difference of two contents, where the comparison does not see
    /// all of it. `None` if no inspector is asked.
    pub fn stated(
        &self,
        name: &[u8],
        (old, new): (&[u8], &[u8]),
        compared: &ComparedContents,
    ) -> Option<Result<Answer, Trouble>> {
        let is_same = matches!(compared.difference, ContentDifference::Same);
        let is_table = matches!(compared.difference, ContentDifference::Table(_));
        // A format that could not be read is not read again.
        let is_asked = !is_same && !is_table && compared.trouble.is_none();
        // An inspector of the user's own has priority over each comparison.
        let is_asked = is_asked || !is_same && self.is_users(name, new);
        is_asked.then(|| self.changes(name, old, new)).flatten()
    }

    /// Asks what changed inside of a file whose format a comparison of lines or cells does not see
    /// into. `None` for other formats, and when earlier questions took too long.
    fn changes(&self, name: &[u8], old: &[u8], new: &[u8]) -> Option<Result<Answer, Trouble>> {
        let entry = self.entry(name, new)?;
        let is_seen = match entry.name.as_str() {
            "csv" => true,
            "text" => is_text(old) && is_text(new),
            _ => false,
        };
        let takes_both = self.takes(entry, name, old);
        let has_time = self.begun.elapsed() < PATIENCE;
        (!is_seen && takes_both && has_time).then(|| self.ask(entry, name, old, Some(new)))
    }
}

/// The directory of kept answers of a store.
pub fn kept_answers(store: &Path) -> PathBuf {
    store.join(KEPT)
}

/// The columns that the user chose as keys of tables.
pub fn table_keys() -> TableKeys {
    catalogue().keys().clone()
}

/// The built-in inspectors, with the user's own before them.
fn catalogue() -> Catalogue {
    let Some(path) = tool_file::in_configuration("inspectors.toml") else {
        return Catalogue::built_in();
    };
    let mut text = String::new();
    let read = regular::open(&path).and_then(|mut file| file.read_to_string(&mut text));
    let extended = match read {
        Ok(_) => Catalogue::extended(&text, &path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Catalogue::built_in(),
        Err(error) => Err(format!("{} is ignored: {error}", path.display())),
    };
    let mut all = extended.unwrap_or_else(|wrong| {
        complain(&wrong);
        Catalogue::built_in()
    });
    if all.needs_media_types() {
        for list in media_type_lists() {
            if let Ok(bytes) = regular::read(&list) {
                all.add_media_names(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    all
}

/// The lists of the shared-mime-info database that give MIME types to names: the user's and the
/// system's.
fn media_type_lists() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(set("HOME")?).join(".local/share"));
    let own = set("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    let others = set("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let all = own.into_iter().chain(std::env::split_paths(&others));
    all.filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("mime/globs2"))
        .collect()
}

/// An answer's value as this program writes it.
pub fn json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Number(number.to_string()),
        serde_json::Value::String(text) => Value::Bytes(text.clone().into_bytes()),
        serde_json::Value::Array(values) => Value::Array(values.iter().map(json).collect()),
        serde_json::Value::Object(map) => json_map(map),
    }
}

/// An object of an answer.
pub fn json_map(map: &serde_json::Map<String, serde_json::Value>) -> Value {
    let fields = map.iter().map(|(name, value)| (name.clone(), json(value)));
    Value::Map(fields.collect())
}
