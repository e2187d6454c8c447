//! `git-note`: a note of git that names the runs which made the files of a commit.
//!
//! In: a commit of the current directory's repository. Out: a note in [`REF`], and the same text on
//! stdout. A run made a file of the commit if the file's path had the same content in a version
//! that the run wrote. So a file that was edited after the run is not named.
//!
//! Absent: the way from a run to its commit. `record` keeps that (`crate::checkout`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backstory_files::Digest;
use backstory_query::{self as query, PathChange, PathEvent};
use backstory_store::Home;

use super::path_log::run_of;
use super::{Outcome, answer};
use crate::args::runs::GitNoteArgs;
use crate::checkout;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::paths::shown;
use crate::text::shell;
use crate::text::words::counted;
use crate::text::{line, when};
use crate::version_contents::VersionContents;

/// Where the notes are. `git log --notes=backstory` shows them.
const REF: &str = "backstory";

/// The files of a run that a note names. The others are counted.
const NAMED: usize = 20;

/// Larger files of a commit are not compared, in bytes.
const MOST: u64 = 64 << 20;

/// The hook that notes each commit.
const HOOK: &str = "#!/bin/sh\n# Notes which recorded runs made the files of the commit.\n\
    command -v backstory >/dev/null && backstory git-note --quiet || true\n";

/// Writes the note, or installs the hook that does it after each commit.
pub fn run(args: GitNoteArgs, store: Option<&Path>) -> Outcome {
    if args.install {
        return install();
    }
    let revision = args.revision.as_deref().unwrap_or("HEAD");
    let commit = checkout::resolve(revision).ok_or_else(|| {
        Failure::not_found(format!("{revision} is no commit of a repository here"))
    })?;
    // A hook says nothing where nothing was ever recorded.
    if args.quiet && !Home::directory(store).is_ok_and(|directory| directory.exists()) {
        return Ok(0);
    }
    let current = CurrentStore::open(store)?;
    let root = PathBuf::from(OsStr::from_bytes(&plumb(&[
        "rev-parse",
        "--show-toplevel",
    ])?));
    let files = files_of(&commit)?;
    let made = made_by_runs(&current, &root, &files)?;
    if made.is_empty() {
        return answer(|out| match args.quiet {
            true => Ok(()),
            false => writeln!(out, "no recorded run made a file of commit {commit}"),
        });
    }
    let text = note(&current, &made, files.len())?;
    if !args.dry_run {
        add(&commit, &text)?;
    }
    answer(|out| match args.quiet {
        true => Ok(()),
        false => out.write_all(text.as_bytes()),
    })
}

/// A file that a commit added or changed.
struct CommittedFile {
    /// Its path in the work tree.
    path: Vec<u8>,
    /// The digest of its content. `None` if it is too large.
    digest: Option<Digest>,
}

/// The files that a commit added or changed, with their contents' digests. Of a merge, the files
/// that differ from its first parent.
fn files_of(commit: &str) -> Result<Vec<CommittedFile>, Failure> {
    let listed = plumb(&[
        "diff-tree",
        "-r",
        "-z",
        "--root",
        "--no-commit-id",
        "--diff-merges=first-parent",
        "--diff-filter=AMT",
        commit,
    ])?;
    let mut fields = listed.split(|&byte| byte == 0);
    let mut named = Vec::new();
    // `:MODE MODE BLOB BLOB STATUS`, then the path.
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<&[u8]> = about.split(|&byte| byte == b' ').collect();
        // A submodule has no content here.
        if let [_, mode, _, blob, _] = words[..]
            && mode.starts_with(b"10")
        {
            named.push((path.to_vec(), blob.to_vec()));
        }
    }
    let digests = digests(named.iter().map(|(_, blob)| &blob[..]))?;
    let files = named.into_iter().zip(digests);
    Ok(files
        .map(|((path, _), digest)| CommittedFile { path, digest })
        .collect())
}

/// The digests of blobs, by one `git cat-file`.
fn digests<'b>(blobs: impl Iterator<Item = &'b [u8]>) -> Result<Vec<Option<Digest>>, Failure> {
    let mut git = checkout::git(Path::new("."))
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::not_found(format!("cannot start git: {error}")))?;
    let unread =
        |error: io::Error| Failure::not_found(format!("git cat-file ended early: {error}"));
    let (Some(mut asked), Some(told)) = (git.stdin.take(), git.stdout.take()) else {
        return Ok(Vec::new());
    };
    let mut told = BufReader::new(told);
    let mut found = Vec::new();
    for blob in blobs {
        // One after another, so that no pipe fills up.
        asked.write_all(&[blob, b"\n"].concat()).map_err(unread)?;
        asked.flush().map_err(unread)?;
        let mut about = String::new();
        told.read_line(&mut about).map_err(unread)?;
        let size = about
            .trim()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok());
        let Some(size) = size else {
            found.push(None);
            continue;
        };
        let mut hasher = blake3::Hasher::new();
        let mut content = (&mut told).take(size);
        let digest = match size <= MOST {
            true => {
                io::copy(&mut content, &mut hasher).map_err(unread)?;
                Some(Digest(*hasher.finalize().as_bytes()))
            }
            false => {
                io::copy(&mut content, &mut io::sink()).map_err(unread)?;
                None
            }
        };
        told.read_exact(&mut [0]).map_err(unread)?;
        found.push(digest);
    }
    drop(asked);
    let _ = git.wait();
    Ok(found)
}

/// The files of a commit by the run that made them.
type MadeFiles<'f> = BTreeMap<String, Vec<&'f [u8]>>;

fn made_by_runs<'f>(
    current: &CurrentStore,
    root: &Path,
    files: &'f [CommittedFile],
) -> Result<MadeFiles<'f>, Failure> {
    let contents = VersionContents::new(current);
    let mut made = MadeFiles::new();
    for file in files {
        let Some(digest) = &file.digest else { continue };
        let path = root.join(OsStr::from_bytes(&file.path));
        let events = match query::history(&current.store, &path) {
            Ok(events) => events,
            Err(query::Error::NotFound(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in events.iter().rev() {
            if has_content(current, &contents, event, digest)? {
                if event.activity.is_some()
                    && let Some(run) = run_of(current, event)?
                {
                    made.entry(run).or_default().push(&file.path);
                }
                break;
            }
        }
    }
    Ok(made)
}

/// True if the event left a version with this content.
fn has_content(
    current: &CurrentStore,
    contents: &VersionContents<'_>,
    event: &PathEvent,
    digest: &Digest,
) -> Result<bool, Failure> {
    use PathChange::{Metadata, RenamedFrom};
    let Some(version) = event.version else {
        return Ok(false);
    };
    if !event.change.leaves_file() || matches!(event.change, Metadata | RenamedFrom(_)) {
        return Ok(false);
    }
    if let Some((Some(known), _)) = query::known(&current.store, event.ident.as_ref())? {
        return Ok(known == *digest);
    }
    let content = contents.read(version)?;
    Ok(content.is_some_and(|content| Digest(*blake3::hash(&content).as_bytes()) == *digest))
}

/// The text of the note: each run with its command, its commit and its files.
fn note(current: &CurrentStore, made: &MadeFiles<'_>, all: usize) -> Result<String, Failure> {
    let number: usize = made.values().map(Vec::len).sum();
    let of = counted(all, "file", "files");
    let mut text = format!("backstory: recorded runs made {number} of {of}\n");
    for (run, files) in made {
        let summary = query::details(&current.store, run)?.summary;
        let command = shell::words(summary.command.iter().map(|word| &**word));
        let complete = if summary.complete {
            "complete"
        } else {
            "incomplete"
        };
        let began = when::moment(summary.started);
        text += &format!(
            "\nrun {run}, {began}, {complete}\n    {}\n",
            line::excerpt(&command, 200)
        );
        for tree in query::checkouts(&current.store, run)? {
            text += &format!("    ran at {}\n", checkout::text(&tree));
        }
        for path in files.iter().take(NAMED) {
            text += &format!("  {}\n", shown(path));
        }
        if files.len() > NAMED {
            text += &format!("  and {} more\n", files.len() - NAMED);
        }
    }
    Ok(text)
}

/// Adds the note to a commit, in the place of an earlier one.
fn add(commit: &str, text: &str) -> Result<(), Failure> {
    let mut git = checkout::git(Path::new("."));
    let git = git
        .args(["notes", "--ref", REF, "add", "-f", "-F", "-", commit])
        .stdin(Stdio::piped());
    tell(git, text.as_bytes()).map(drop)
}

/// Writes the hook that notes each commit. A hook that is there stays.
fn install() -> Outcome {
    let path = plumb(&["rev-parse", "--git-path", "hooks/post-commit"])?;
    let path = Path::new(OsStr::from_bytes(&path));
    let failed =
        |error: io::Error| Failure::not_found(format!("cannot write {}: {error}", path.display()));
    match fs::read_to_string(path) {
        Ok(text) if text.contains("backstory git-note") => {}
        Ok(_) => {
            return Err(Failure::misuse(format!(
                "{} is there already: add the line `backstory git-note --quiet` to it",
                path.display()
            )));
        }
        Err(_) => {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory).map_err(failed)?;
            }
            fs::write(path, HOOK).map_err(failed)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
    }
    answer(|out| {
        writeln!(
            out,
            "{} notes each commit; `git log --notes={REF}` shows the notes",
            path.display()
        )
    })
}

/// The output of a command of git, without the last line's end.
fn plumb(args: &[&str]) -> Result<Vec<u8>, Failure> {
    let mut out = tell(checkout::git(Path::new(".")).args(args), b"")?;
    if out.last() == Some(&b'\n') {
        out.pop();
    }
    Ok(out)
}

/// The output of git after this input. A failure has the last line that git printed.
fn tell(git: &mut Command, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::not_found(format!("cannot run git: {error}"));
    git.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = git.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If git ended early, its status tells more.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said
        .trim()
        .lines()
        .last()
        .unwrap_or("no message")
        .to_owned();
    Err(Failure::not_found(format!("git failed: {last}")))
}
