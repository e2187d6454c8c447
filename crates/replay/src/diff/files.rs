//! Compares the files of two sides, by path.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_graph::model::EntityKind;
use backstory_store::facts::Availability;
use backstory_store::same_version;

use super::{DiffSide, Difference, DifferenceKind, Findings, SideFile, UnknownFile};

/// The comparison of two contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SameContent {
    Yes,
    No,
    Unknown,
}

/// The files of one kind of a side, by name.
type SideFiles = BTreeMap<Vec<u8>, SideFile>;

/// Compares inputs and outputs.
pub fn compare(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    let (mut inputs, mut outputs) = (
        (a.inputs.clone(), b.inputs.clone()),
        (a.outputs.clone(), b.outputs.clone()),
    );
    let mut same_in_other_role = BTreeSet::new();
    same_in_other_role.extend(one_made_it(&outputs.0, (&inputs.1, &outputs.1)));
    same_in_other_role.extend(one_made_it(&outputs.1, (&inputs.0, &outputs.0)));
    for name in same_in_other_role {
        for files in [&mut inputs.0, &mut inputs.1, &mut outputs.0, &mut outputs.1] {
            files.remove(&name);
        }
        found.same_outputs.push(name);
    }
    for (pair, is_output) in [(&inputs, false), (&outputs, true)] {
        each(&pair.0, &pair.1, is_output, found);
    }
    found.same_outputs.sort_small();
}

/// Files that one side made and the other one only used, with the same content. A build makes only
/// outdated files again, and uses the rest as it is. A file that the other side used and then
/// changed is an output of both.
fn one_made_it(made: &SideFiles, (used, changed): (&SideFiles, &SideFiles)) -> Vec<Vec<u8>> {
    let is_same = |name: &Vec<u8>, file: &SideFile| {
        let other = used.get(name).filter(|_| !changed.contains_key(name));
        other.is_some_and(|other| same(file, other) == SameContent::Yes)
    };
    let both = made.iter().filter(|(name, file)| is_same(name, file));
    both.map(|(name, _)| name.clone()).collect()
}

fn each(a: &SideFiles, b: &SideFiles, output: bool, found: &mut Findings) {
    let names: BTreeSet<&Vec<u8>> = a.keys().chain(b.keys()).into_tree();
    for name in names {
        let (old, new) = (a.get(name), b.get(name));
        let same = match (old, new) {
            (Some(old), Some(new)) => same(old, new),
            // A file that one side alone looked for, in vain, makes no difference.
            (Some(one), None) | (None, Some(one)) if one.kind == EntityKind::Missing => continue,
            _ => SameContent::No,
        };
        match same {
            SameContent::Unknown => found.unknown.extend(unknown(name, (old, new), output)),
            SameContent::Yes if output => found.same_outputs.push(name.clone()),
            SameContent::Yes => {}
            SameContent::No => {
                let file = old.into_iter().chain(new);
                let at = file.clone().map(|file| file.at).min().unwrap_or_default();
                let kind = match output {
                    true => DifferenceKind::Output,
                    false => kind(name, file.clone().any(|file| file.executed)),
                };
                let mut difference = Difference::new(kind, name.clone(), said(old), said(new), at);
                let there = |file: &&SideFile| file.kind != EntityKind::Missing;
                difference.versions = [old, new].map(|file| Some(file.filter(there)?.key));
                difference.packages = [old, new].map(|file| {
                    let held = file?.held.as_ref();
                    held.and_then(Availability::package).cloned()
                });
                if !output {
                    let readers = file.clone().flat_map(|file| &file.readers);
                    difference.activities = readers.copied().collect();
                }
                difference.is_intermediate = file.clone().any(|file| file.is_read_by_others);
                difference.paths = file.map(|file| file.path.clone()).collect();
                found.differences.push(difference);
            }
        }
    }
}

/// A file that cannot be compared. `None` for an answer of the kernel, as in `/proc`: it has no
/// content that could be stored.
fn unknown(
    name: &[u8],
    sides: (Option<&SideFile>, Option<&SideFile>),
    is_output: bool,
) -> Option<UnknownFile> {
    let (old, new) = (sides.0?, sides.1?);
    let of_kernel = |file: &SideFile| {
        let path = Path::new(OsStr::from_bytes(&file.path));
        ["/proc", "/sys", "/dev"]
            .iter()
            .any(|dir| path.starts_with(dir))
    };
    (!of_kernel(old)).then(|| UnknownFile {
        name: name.to_vec(),
        paths: [old.path.clone(), new.path.clone()],
        is_output,
        at: old.at.min(new.at),
    })
}

fn kind(name: &[u8], executed: bool) -> DifferenceKind {
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    let library = base.windows(3).any(|part| part == b".so");
    match executed {
        _ if library => DifferenceKind::Library,
        true => DifferenceKind::Program,
        false => DifferenceKind::Input,
    }
}

fn same(a: &SideFile, b: &SideFile) -> SameContent {
    if (a.kind == EntityKind::Missing) != (b.kind == EntityKind::Missing) {
        return SameContent::No;
    }
    if a.kind == EntityKind::Missing {
        return SameContent::Yes;
    }
    match (a.digest, b.digest, &a.ident, &b.ident) {
        (Some(x), Some(y), ..) if x == y => SameContent::Yes,
        (Some(_), Some(_), ..) => SameContent::No,
        (_, _, Some(x), Some(y)) if same_version(x, y) => SameContent::Yes,
        (_, _, Some(x), Some(y)) if x.size != y.size => SameContent::No,
        _ => SameContent::Unknown,
    }
}

/// A version in words: its package, the begin of its digest, its size.
fn said(file: Option<&SideFile>) -> Option<Vec<u8>> {
    let file = file?;
    if file.kind == EntityKind::Missing {
        return Some(b"not there".to_vec());
    }
    let mut words = Vec::new();
    if let Some(package) = file.held.as_ref().and_then(Availability::package) {
        words.push(format!(
            "{} {} ({})",
            package.name, package.version, package.manager
        ));
    }
    if let Some(digest) = &file.digest {
        words.push(digest.to_string().chars().take(12).collect());
    }
    if let Some(ident) = &file.ident {
        words.push(format!("{} bytes", ident.size));
    }
    if words.is_empty() {
        words.push("a version that is not known".to_owned());
    }
    Some(words.join(", ").into_bytes())
}
