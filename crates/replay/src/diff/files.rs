//! Compares the files of two sides, by path.

use std::collections::{BTreeMap, BTreeSet};

use backstory_graph::model::EntityKind;
use backstory_store::facts::Availability;
use backstory_store::same_version;

use super::{DiffSide, Difference, DifferenceKind, Findings, SideFile};

/// The comparison of two contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SameContent {
    Yes,
    No,
    Unknown,
}

/// Compares inputs and outputs.
pub fn compare(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    each(&a.inputs, &b.inputs, false, found);
    each(&a.outputs, &b.outputs, true, found);
}

fn each(
    a: &BTreeMap<Vec<u8>, SideFile>,
    b: &BTreeMap<Vec<u8>, SideFile>,
    output: bool,
    found: &mut Findings,
) {
    let names: BTreeSet<&Vec<u8>> = a.keys().chain(b.keys()).collect();
    for name in names {
        let (old, new) = (a.get(name), b.get(name));
        let same = match (old, new) {
            (Some(old), Some(new)) => same(old, new),
            // A file that one side alone looked for, in vain, makes no difference.
            (Some(one), None) | (None, Some(one)) if one.kind == EntityKind::Missing => continue,
            _ => SameContent::No,
        };
        match same {
            SameContent::Unknown => found.unknown.push(name.clone()),
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
                difference.paths = file.map(|file| file.path.clone()).collect();
                found.differences.push(difference);
            }
        }
    }
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
