//! Paths below the mount points of recorded mounts. Such a run has the paths in the mounted
//! directory, so a question about the other path finds nothing after the unmount.
//!
//! In: a path that no run has seen. Out: its path in the directory that a mount showed there.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use backstory_eventlog::run::RunHeader;
use backstory_query::{self as query, Asked, subject as versions};
use backstory_store::GraphStore;
use clap::Parser;

use crate::args::{Cli, Command};
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::paths::shown;

/// The failure of a question about a path. For an unknown path below the mount point of a recorded
/// mount, it names the path in the mounted directory.
pub fn unseen(current: &CurrentStore, path: &Path, error: query::Error) -> Failure {
    let is_unseen = matches!(
        error,
        query::Error::NotFound(_) | query::Error::OnlyMissing(_)
    );
    match is_unseen.then(|| behind(current, path)).flatten() {
        Some((run, behind)) => {
            let behind = shown(behind.as_os_str().as_bytes());
            Failure::not_found(format!(
                "{error}; run {run} mounted a directory there, in which the path is {behind}: ask \
                 for that"
            ))
        }
        None => error.into(),
    }
}

/// The path in the directory that a mount showed, and the id of its run. The newest mount counts
/// with whose directory the path is known, else the newest mount with this mount point.
fn behind(current: &CurrentStore, path: &Path) -> Option<(String, PathBuf)> {
    let asked = Asked::new(path).ok()?;
    let mut runs = current.store.runs().ok()?;
    runs.sort_unstable_by_key(|run| Reverse(run.header.started));
    let mounts = runs.iter().filter_map(|run| {
        let below = below(&places(&run.header)?, &asked)?;
        Some((run.header.id.clone(), below))
    });
    let found: Vec<(String, PathBuf)> = mounts.collect();
    let is_known = |path: &Path| versions::newest(&current.store, path, None).is_ok();
    let known = found.iter().find(|(_, path)| is_known(path));
    known.or(found.first()).cloned()
}

/// The path in the directory of a path below its mount point. `None` for other paths, and where a
/// directory was mounted over itself.
fn below([directory, mountpoint]: &[PathBuf; 2], asked: &Asked) -> Option<PathBuf> {
    let directory = Asked::new(directory).ok()?;
    let directory = directory.real.unwrap_or(directory.absolute);
    let mountpoint = Asked::new(mountpoint).ok()?;
    let points = mountpoint.names();
    let mut rests = asked.names().into_iter().flat_map(|name| {
        let name = Path::new(OsStr::from_bytes(name));
        let points = points.iter();
        points.filter_map(move |point| name.strip_prefix(OsStr::from_bytes(point)).ok())
    });
    let rest = rests.next()?;
    let found = match rest.as_os_str().is_empty() {
        true => directory,
        false => directory.join(rest),
    };
    (found != asked.absolute).then_some(found)
}

/// The directory and the mount point of a run of `mount`, by its command.
fn places(header: &RunHeader) -> Option<[PathBuf; 2]> {
    if header.source.as_deref() != Some("mount") {
        return None;
    }
    let words = header.command.iter().cloned().map(OsString::from_vec);
    let Command::Mount(args) = Cli::try_parse_from(words).ok()?.command else {
        return None;
    };
    let from = Path::new(OsStr::from_bytes(&header.cwd));
    Some([from.join(args.directory), from.join(args.mountpoint)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(source: &str, words: &[&str]) -> RunHeader {
        RunHeader {
            source: Some(source.to_owned()),
            command: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            cwd: b"/nowhere/srv".to_vec(),
            ..RunHeader::default()
        }
    }

    #[test]
    fn a_path_below_a_mount_point_has_another_one_in_the_mounted_directory() {
        let words = [
            "backstory",
            "mount",
            "--contents=all",
            "data",
            "/nowhere/mnt",
        ];
        let places = places(&header("mount", &words)).unwrap();
        for (path, wanted) in [
            ("/nowhere/mnt/a/b", Some("/nowhere/srv/data/a/b")),
            ("/nowhere/mnt/../mnt", Some("/nowhere/srv/data")),
            ("/nowhere/mnt2/a", None),
            ("/nowhere/srv/data/a", None),
        ] {
            let asked = Asked::new(Path::new(path)).unwrap();
            assert_eq!(below(&places, &asked), wanted.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn only_a_mount_has_a_mount_point_and_one_over_itself_leads_nowhere_else() {
        let over = header("mount", &["backstory", "mount", "data", "data"]);
        let asked = Asked::new(Path::new("/nowhere/srv/data/a")).unwrap();
        assert_eq!(below(&places(&over).unwrap(), &asked), None);
        let watch = header("postgres", &["backstory", "watch", "postgres://h/bank"]);
        assert_eq!(places(&watch), None);
        assert_eq!(places(&header("mount", &["backstory", "mount"])), None);
    }
}
