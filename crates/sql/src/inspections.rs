//! Answers of inspectors about versions of files. The caller of [`ask`](crate::ask) has the
//! inspectors.

use backstory_store::EntityKey;
use serde_json::Value;

/// The names of the views whose rows are answers of inspectors.
pub const INSPECTED_VIEWS: [&str; 2] = ["facts", "changes"];

/// The answer of an inspector about a version, or about the change that led to it.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The inspector's name.
    pub inspector: String,
    /// For `changes`: the run that left the content before.
    pub former_run: Option<String>,
    /// Facts by name. For `changes`, each name is a sentence, and the value is missing.
    pub said: Vec<(String, Option<Value>)>,
    /// Why the inspector could not read the file.
    pub error: Option<String>,
}

/// Asks inspectors about versions of files.
pub trait Inspections {
    /// The facts of a version. `None` if its content is not known, or no inspector takes it.
    ///
    /// # Errors
    /// No inspector can be asked at all, or the store cannot be read: a sentence.
    fn facts(&self, version: EntityKey) -> std::result::Result<Option<Inspection>, String>;

    /// The changes inside of a file by which it got a version. `None` if one of the two contents is
    /// not known, or no inspector takes them.
    ///
    /// # Errors
    /// As for [`facts`](Inspections::facts).
    fn changes(&self, version: EntityKey) -> std::result::Result<Option<Inspection>, String>;
}
