//! The state that the statements of a shell's text can pass to each other.
//!
//! In: the statements. Out: for each statement, the later ones that can depend on what it took in.
//! A statement passes on
//!
//! - the variables and the other state that it sets, to statements that use them;
//! - its status, to a statement with `$?`, and under `set -e` to all later ones;
//! - whether the shell goes on at all, if it has `exit`.
//!
//! Invariant: the relation is transitive and never leads back.

use std::collections::HashSet;

use super::Statements;
use super::statements::{BACKGROUND, DIRECTORY, POSITIONAL, STATUS, ShellText, Statement, words};

/// The most statements of a text that are compared. A longer text passes everything on.
const MOST: usize = 1000;

/// Variables of which the shell itself makes something else than words.
const SPECIAL: [&str; 12] = [
    "IFS",
    "PATH",
    "CDPATH",
    "HOME",
    "ENV",
    "GLOBIGNORE",
    "EXECIGNORE",
    "FIGNORE",
    "POSIXLY_CORRECT",
    "SHELLOPTS",
    "TMPDIR",
    "LANG",
];

/// Later statements that depend on a statement, by its number.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// On what it took in from files and channels.
    values: Vec<Reach>,
    /// On the statuses that it heard.
    statuses: Vec<Reach>,
}

/// The statements from a first one on, or some of them.
#[derive(Debug, Clone)]
enum Reach {
    /// The statement itself and all behind it.
    All,
    /// These.
    Some(HashSet<usize>),
}

impl Flow {
    /// The flow through a text. `environment`: the names of the variables with which the shell
    /// began. `None`: the text is too long.
    pub fn of(text: &ShellText, environment: &HashSet<String>) -> Option<Flow> {
        let all = &text.statements;
        if all.len() > MOST {
            return None;
        }
        let uses: Vec<HashSet<&str>> = all.iter().map(uses).collect();
        let search = Search {
            text,
            environment,
            uses,
        };
        let mut flow = Flow::default();
        for (at, one) in all.iter().enumerate() {
            let ends = one.may_end();
            let fails = text.is_errexit && one.tests;
            flow.values.push(search.from(at, ends || fails));
            flow.statuses.push(search.from(at, ends || text.is_errexit));
        }
        Some(flow)
    }

    /// True if one of the statements `to` can depend on what one of the statements `from` took in.
    /// `is_status`: it is the status of a command.
    pub fn leads(&self, from: (usize, usize), to: &Statements, is_status: bool) -> bool {
        let reaches = match is_status {
            true => &self.statuses,
            false => &self.values,
        };
        (from.0..=from.1).any(|at| match &reaches[at] {
            Reach::All => to.iter().any(|to| *to >= at),
            Reach::Some(some) => to.iter().any(|to| some.contains(to)),
        })
    }
}

impl Statement {
    /// True if it may end the shell, or has effects that are not known.
    fn may_end(&self) -> bool {
        self.sets.all || self.ends || self.expands_unset()
    }

    /// `${x?message}` ends the shell if a variable is not set.
    fn expands_unset(&self) -> bool {
        let braces = self.text.split("${").skip(1);
        let mut inside = braces.map(|rest| rest.split('}').next().unwrap_or_default());
        inside.any(|inside| inside.contains('?'))
    }
}

/// The names of the shell's state that a statement uses.
fn uses(statement: &Statement) -> HashSet<&str> {
    let text = &statement.text;
    let mut uses = words(text);
    uses.insert(DIRECTORY);
    if text.contains("$?") || text.contains("${?") || text.contains("PIPESTATUS") {
        uses.insert(STATUS);
    }
    if text.contains("$!") || uses.contains("wait") {
        uses.insert(BACKGROUND);
    }
    let signs = text.match_indices('$').map(|(at, _)| &text[at + 1..]);
    let mut signs = signs.map(|rest| rest.strip_prefix('{').unwrap_or(rest));
    let is_positional = |c: char| c.is_ascii_digit() || "@*#".contains(c);
    let loops = text.contains("for ") && !text.contains(" in ");
    let builtins = ["shift", "getopts"];
    if loops
        || signs.any(|rest| rest.starts_with(is_positional))
        || builtins.iter().any(|builtin| text.contains(builtin))
    {
        uses.extend([POSITIONAL, "OPTIND"]);
    }
    uses
}

struct Search<'t> {
    text: &'t ShellText,
    environment: &'t HashSet<String>,
    /// The names that each statement uses.
    uses: Vec<HashSet<&'t str>>,
}

impl Search<'_> {
    /// The statements that depend on one. `ends`: it may end the shell.
    fn from(&self, start: usize, ends: bool) -> Reach {
        let all = &self.text.statements;
        let mut reached = HashSet::from([start]);
        let mut set: HashSet<&str> = HashSet::new();
        let mut status = true;
        if ends || self.adds(&all[start], &mut set) {
            return Reach::All;
        }
        for at in start + 1..all.len() {
            if !status && set.is_empty() {
                break;
            }
            let uses = &self.uses[at];
            let by_status = status && uses.contains(STATUS);
            let by_state =
                !set.is_empty() && (all[at].uses_all || set.iter().any(|name| uses.contains(name)));
            status = by_status || by_state;
            if !status {
                continue;
            }
            reached.insert(at);
            let one = &all[at];
            let ends = one.may_end() || self.text.is_nounset;
            // Its own commands have other words now. Their statuses may end the shell.
            if ends || self.text.is_errexit || self.adds(one, &mut set) {
                return Reach::Some(reached.into_iter().chain(at..all.len()).collect());
            }
        }
        Reach::Some(reached)
    }

    /// Adds what a statement sets. True if everything behind it depends on that.
    fn adds<'t>(&self, statement: &'t Statement, set: &mut HashSet<&'t str>) -> bool {
        let is_everywhere = |name: &&String| {
            self.environment.contains(*name)
                || self.text.exported.contains(*name)
                || SPECIAL.contains(&name.as_str())
                || name.starts_with("BASH") && *name != "BASH_REMATCH"
                || name.starts_with("LC_")
                || *name == DIRECTORY
        };
        set.extend(statement.sets.names.iter().map(String::as_str));
        statement.sets.names.iter().any(|name| is_everywhere(&name))
    }
}
