//! Judges look-ups: would the same question about a file get the same answer now?
//!
//! In: a `stat`, `access` or `readlink` of an activity. Out: the reason that it gives. The answer
//! has the type, the size, the mode and the times of the file. Rules by name:
//!
//! | rule | what does not count |
//! | --- | --- |
//! | attribute | all of a file whose bytes the same activity had begun to read, unless its program uses times |
//! | times | the times, for a program of the system that is not known to use them |
//! | test | all but the existence and the type, for a shell whose text has no other test |
//! | directory | the times and the size of a directory, unless a word of a program that uses times names it and its names were not read |
//! | package | files of the system, unless the program uses times |

use backstory_files::{CLOCK_GRANULARITY, Ident};
use backstory_graph::model::{Edge, Entity, EntityKind, Relation};
use backstory_workflow::paths::{absolute, is_below_kernel, is_system};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{is_interpreted, is_one, is_shell};
use backstory_workflow::tools::knowledge;
use rustix::io::Errno;

use crate::Result;
use crate::file_state::FileComparison;
use crate::loaded_runs::LoadedRun;
use crate::reason::Reason;
use crate::reductions::end_of_look;

/// The bits of a mode that say what kind of file it is (inode(7)).
const KIND: u32 = 0o170000;

/// Tests of a shell for times, and the builtin that interprets other text.
const TIME_TESTS: [&[u8]; 4] = [b"-nt", b"-ot", b"-N", b"eval"];

/// Tests of a shell for a size or a mode.
const SIZE_TESTS: [&[u8]; 8] = [b"-s", b"-x", b"-r", b"-w", b"-u", b"-g", b"-k", b"-O"];

/// The attributes of a file that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Nothing.
    Nothing,
    /// Its existence and type.
    Type,
    /// Also size and mode.
    Size,
    /// Also the times.
    Times,
}

/// The reason that a look-up gives.
pub fn reason(
    files: &FileComparison<'_>,
    run: &LoadedRun,
    at: usize,
    edge: &Edge,
) -> Result<Option<Reason>> {
    let entity = run.recording.entity(edge.entity);
    let path = &entity.path;
    let counted = counted(run, at, edge);
    if counted == Counted::Nothing {
        return Ok(None);
    }
    let Some(expected) = run.expected(entity) else {
        return Ok(None);
    };
    let now = match expected.kind {
        EntityKind::Symlink => files.present.link(path),
        _ => files.present.ident(path),
    };
    let now = match now {
        Ok(now) => now,
        Err(Errno::NOENT | Errno::NOTDIR) if entity.kind == EntityKind::Symlink => {
            return Ok(Some(Reason::InputGone(path.clone())));
        }
        Err(Errno::NOENT | Errno::NOTDIR) if files.present.link(path).is_err() => {
            return Ok(Some(Reason::InputGone(path.clone())));
        }
        Err(_) => return Ok(None),
    };
    let changed = || Some(Reason::LookChanged(path.clone()));
    if leads_elsewhere(files, run, entity)? {
        return Ok(changed());
    }
    let Some(then) = &expected.ident else {
        let (is_directory, was) = (is_directory(&now), entity.kind == EntityKind::Directory);
        if was != is_directory {
            return Ok(None);
        }
        let asks_type = counted == Counted::Type || is_directory && counted != Counted::Times;
        let since = match expected.version {
            0 => edge.interval.start - CLOCK_GRANULARITY,
            _ => run.ended,
        };
        let changes = now.mtime.max(now.ctime);
        // The run itself gave or took names in the directory.
        if is_directory && changes <= run.ended && !run.worked_in(path).is_empty() {
            return Ok(None);
        }
        return Ok(match changes > since && !asks_type {
            false => None,
            true if changes > run.ended => changed(),
            true => Some(Reason::MayHaveChanged(path.clone())),
        });
    };
    // The mode of a file that the run made may have been changed after its identity was taken.
    let then = match expected.version {
        0 => *then,
        _ => Ident {
            mode: now.mode,
            ..*then
        },
    };
    Ok(match differs(&then, &now, counted) {
        true => changed(),
        false => None,
    })
}

/// True if a look-up can decide something.
pub fn counts(run: &LoadedRun, at: usize, edge: &Edge) -> bool {
    counted(run, at, edge) != Counted::Nothing
}

fn counted(run: &LoadedRun, at: usize, edge: &Edge) -> Counted {
    let recording = &run.recording;
    let entity = recording.entity(edge.entity);
    let program = recording.activities[at].exec_path.as_deref();
    let program = program.unwrap_or_default();
    let uses_times = is_one(program, &knowledge().programs.uses_times);
    if is_system(&entity.path) && !uses_times {
        return Counted::Nothing;
    }
    if edge.relation == Relation::Link {
        return Counted::Times;
    }
    let also = |wanted: &[Relation]| {
        let mut edges = recording.edges[at].iter();
        edges.any(|other| other.entity == edge.entity && wanted.contains(&other.relation))
    };
    if entity.kind == EntityKind::Directory {
        let is_asked =
            uses_times && !also(&[Relation::List]) && is_word(recording, at, &entity.path);
        return match is_asked {
            true => Counted::Times,
            false => Counted::Type,
        };
    }
    if uses_times {
        return Counted::Times;
    }
    if end_of_look(run, at, edge).is_some_and(|end| end <= edge.interval.start) {
        return Counted::Nothing;
    }
    if is_shell(recording, at) {
        return match run.texts.may_contain(&run.recording, at, &TIME_TESTS) {
            true => Counted::Times,
            false if run.texts.may_contain(&run.recording, at, &SIZE_TESTS) => Counted::Size,
            false => Counted::Type,
        };
    }
    let interprets =
        is_one(program, &knowledge().programs.interpreters) || is_interpreted(recording, at);
    match interprets || !is_system(program) {
        true => Counted::Times,
        false => Counted::Size,
    }
}

/// True if a name by which the run used the file now leads to another content: a symbolic link was
/// switched.
pub fn leads_elsewhere(files: &FileComparison<'_>, run: &LoadedRun, used: &Entity) -> Result<bool> {
    if used.version > 0 || used.aliases.is_empty() {
        return Ok(false);
    }
    let Ok(here) = files.present.ident(&used.path) else {
        return Ok(false);
    };
    for name in &used.aliases {
        if !name.starts_with(b"/") || is_below_kernel(name) || run.left(name).is_some() {
            continue;
        }
        match files.present.ident(name) {
            Ok(there) if (there.dev, there.ino) == (here.dev, here.ino) => {}
            Ok(there) if files.holds(name, &there, &here)? == Some(true) => {}
            Ok(_) => return Ok(true),
            // A name that the run itself removed.
            Err(_) => {}
        }
    }
    Ok(false)
}

/// True if one of the program's words names the file.
fn is_word(recording: &Recording, at: usize, path: &[u8]) -> bool {
    let activity = &recording.activities[at];
    let mut words = activity.argv.iter().skip(1);
    words.any(|word| absolute(word, &activity.cwd) == path)
}

fn is_directory(ident: &Ident) -> bool {
    ident.mode & KIND == 0o040000
}

fn differs(then: &Ident, now: &Ident, counted: Counted) -> bool {
    let kind = |ident: &Ident| ident.mode & KIND;
    let size = |ident: &Ident| match is_directory(ident) {
        true => 0,
        false => ident.size,
    };
    match counted {
        Counted::Nothing => false,
        Counted::Type => kind(then) != kind(now),
        Counted::Size => (then.mode, size(then)) != (now.mode, size(now)),
        Counted::Times => (then.mode, size(then), then.mtime) != (now.mode, size(now), now.mtime),
    }
}
