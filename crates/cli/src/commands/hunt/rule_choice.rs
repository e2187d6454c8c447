//! The rules that a hunt uses: of the program, of the user's configuration and of given files.
//!
//! In: files, and the ids of the wanted rules. Out: rules. Invariant: a rule or file that is left
//! out has a message.

use std::path::Path;

use backstory_hunt::{Library, Rule};

use crate::error::{Failure, complain};
use crate::text::similar::suggestion;
use crate::tool_file::in_configuration;

/// The rules that are used.
pub struct Known {
    /// Those that are wanted.
    pub rules: Vec<Rule>,
    /// A message for each rule or file that is left out, and for each file without a rule.
    pub mistakes: Vec<String>,
}

/// The rules of the program, of the user's configuration and of `given`, or those of them that are
/// `wanted`. Rules with mistakes are reported and left out.
///
/// # Errors
///
/// A file cannot be read, or no rule has a wanted id.
pub fn rules(given: &[impl AsRef<Path>], wanted: &[String]) -> Result<Vec<Rule>, Failure> {
    let known = known_rules(given, wanted)?;
    tell(&known.mistakes);
    Ok(known.rules)
}

/// The same, with the mistakes for the caller to report.
pub fn known_rules(given: &[impl AsRef<Path>], wanted: &[String]) -> Result<Known, Failure> {
    let mut library = Library::built_in();
    if let Some(own) = in_configuration("hunt").filter(|own| own.is_dir())
        && let Err(error) = library.load(&own)
    {
        library.mistakes.push(format!("{}: {error}", own.display()));
    }
    load(&mut library, given)?;
    let mistakes = mistakes_in(&library);
    let mut rules = library.rules;
    let is_known = |id: &&String| rules.iter().any(|rule| rule.id == **id);
    if let Some(unknown) = wanted.iter().find(|id| !is_known(id)) {
        // A mistake can be the reason.
        tell(&mistakes);
        let meant = suggestion(unknown, rules.iter().map(|rule| &*rule.id));
        return Err(Failure::misuse(format!(
            "no rule is named {unknown}{meant}: `backstory hunt --list` lists them"
        )));
    }
    if !wanted.is_empty() {
        rules.retain(|rule| wanted.contains(&rule.id));
    }
    Ok(Known { rules, mistakes })
}

/// Says on stderr what is left out.
pub fn tell(mistakes: &[String]) {
    for mistake in mistakes {
        complain(mistake);
    }
}

/// The messages about a library.
fn mistakes_in(library: &Library) -> Vec<String> {
    let left_out = library.mistakes.iter();
    let left_out = left_out.map(|mistake| format!("rule left out: {mistake}"));
    let empty = library.empty.iter();
    let empty = empty.map(|file| format!("{file}: there is no rule in it"));
    left_out.chain(empty).collect()
}

/// Adds the rules of files.
fn load(library: &mut Library, files: &[impl AsRef<Path>]) -> Result<(), Failure> {
    for path in files {
        let path = path.as_ref();
        let cannot = |error| {
            Failure::misuse(format!(
                "cannot read rules from {}: {error}",
                path.display()
            ))
        };
        let before = (library.loaded, library.empty.len());
        library.load(path).map_err(cannot)?;
        // A directory without files.
        if (library.loaded, library.empty.len()) == before {
            library.empty.push(path.display().to_string());
        }
    }
    Ok(())
}

/// The ids of the rules in files.
///
/// # Errors
///
/// A file cannot be read, or none has a rule without a mistake.
pub fn rules_of(files: &[impl AsRef<Path>]) -> Result<Vec<String>, Failure> {
    let mut library = Library::default();
    load(&mut library, files)?;
    if library.rules.is_empty() && !files.is_empty() {
        tell(&mistakes_in(&library));
        let names = files.iter().map(|file| file.as_ref().display().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(Failure::misuse(format!("no rule of {names} can be used")));
    }
    Ok(library.rules.into_iter().map(|rule| rule.id).collect())
}
