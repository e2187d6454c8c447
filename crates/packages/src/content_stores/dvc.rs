//! DVC. `FILE.dvc` and `dvc.lock` name outputs and their MD5, and the cache has each content as
//! `files/md5/aa/REST`. The cache of DVC 2 lacks `files/md5`. An output that is a directory has an
//! object `aa/REST.dir`, which lists its files as JSON
//! (<https://dvc.org/doc/user-guide/project-structure>).
//!
//! DVC 2 computed the MD5 of a text with line ends of Unix. A text with other line ends is not
//! recognized as an output.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use yaml_rust2::{Yaml, YamlLoader};

use super::content_store::{ContentStore, md5, tail};
use crate::checksum::Checksum;
use crate::records::{Remembered, text, within};

/// Digits of an MD5.
const DIGITS: usize = 32;

/// The outputs that were looked up.
#[derive(Default)]
pub struct Dvc {
    /// The project that a directory belongs to.
    projects: Remembered<Option<Project>>,
    /// The outputs that the files of a directory name.
    outputs: Remembered<Vec<Output>>,
    /// The files of an output that is a directory, by the path of its object.
    listings: Remembered<HashMap<String, String>>,
}

#[derive(Clone)]
struct Project {
    root: PathBuf,
    cache: PathBuf,
}

struct Output {
    path: PathBuf,
    /// The MD5, and `.dir` for a directory.
    object: String,
}

/// An entry of a directory's object.
#[derive(Deserialize)]
struct Entry {
    md5: String,
    relpath: String,
}

impl ContentStore for Dvc {
    fn name(&self) -> &'static str {
        "the cache of DVC"
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        if let Some(cached) = in_cache(real) {
            return Some(cached);
        }
        let project = self.projects.of(real.parent()?, Project::around).clone()?;
        let inside = |dir: &&Path| dir.starts_with(&project.root);
        let mut above = real.ancestors().skip(1).take_while(inside);
        above.find_map(|dir| {
            let outputs = self.outputs.of(dir, outputs);
            let output = outputs.iter().find(|one| real.starts_with(&one.path))?;
            let digits = match output.object.strip_suffix(".dir") {
                None if output.path == real => output.object.clone(),
                None => return None,
                Some(_) => {
                    let object = project.object(&output.object)?;
                    let below = real.strip_prefix(&output.path).ok()?.to_str()?;
                    self.listings.of(&object, listing).get(below)?.clone()
                }
            };
            Some((project.object(&digits)?, md5(&digits)?))
        })
    }
}

/// A file that lies in a cache itself, as a linked output does.
fn in_cache(real: &Path) -> Option<(PathBuf, Checksum)> {
    let [files, kind, first, rest] = tail(real)?;
    let is_object = (files, kind, first.len()) == ("files", "md5", 2);
    let checksum = is_object.then(|| md5(&format!("{first}{rest}")))??;
    Some((real.to_owned(), checksum))
}

impl Project {
    /// The project that a directory belongs to.
    fn around(dir: &Path) -> Option<Project> {
        let root = dir
            .ancestors()
            .find(|dir| dir.join(".dvc/config").is_file())?;
        let own = root.join(".dvc");
        // The local settings come before the shared ones.
        let set = ["config.local", "config"]
            .iter()
            .find_map(|name| cache_dir(&text(&own.join(name))?));
        Some(Project {
            root: root.to_owned(),
            cache: match set {
                Some(dir) => within(&own, &dir),
                None => own.join("cache"),
            },
        })
    }

    /// The object of this name in the cache, if it exists.
    fn object(&self, name: &str) -> Option<PathBuf> {
        let (first, rest) = name.split_at_checked(2)?;
        let places = [self.cache.join("files/md5"), self.cache.clone()];
        places
            .iter()
            .map(|place| place.join(first).join(rest))
            .find(|path| path.is_file())
    }
}

/// `dir` in the section `[cache]` of a configuration.
fn cache_dir(config: &str) -> Option<String> {
    let mut section = "";
    config.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let (key, value) = line.split_once('=')?;
        (section == "[cache]" && key.trim() == "dir").then(|| value.trim().to_owned())
    })
}

/// The outputs that the files `*.dvc` and `dvc.lock` of a directory name.
fn outputs(dir: &Path) -> Vec<Output> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "dvc") || path.ends_with("dvc.lock")
    });
    files
        .filter_map(|path| YamlLoader::load_from_str(&text(&path)?).ok())
        .filter_map(|documents| documents.into_iter().next())
        .flat_map(|file| {
            let stages = file["stages"].as_hash();
            let staged = stages.into_iter().flat_map(|stages| stages.values());
            let all: Vec<Output> = std::iter::once(&file)
                .chain(staged)
                .flat_map(|stage| stage["outs"].as_vec().map_or(&[][..], Vec::as_slice))
                .filter_map(|out| output(dir, out))
                .collect();
            all
        })
        .collect()
}

fn output(dir: &Path, out: &Yaml) -> Option<Output> {
    let object = out["md5"].as_str()?;
    let digits = object.strip_suffix(".dir").unwrap_or(object);
    let is_md5 = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_md5.then(|| {
        Some(Output {
            path: within(dir, out["path"].as_str()?),
            object: object.to_owned(),
        })
    })?
}

/// The MD5 of each file of a directory, by its path there.
fn listing(object: &Path) -> HashMap<String, String> {
    let entries = text(object).and_then(|text| serde_json::from_str::<Vec<Entry>>(&text).ok());
    let entries = entries.into_iter().flatten();
    entries.map(|entry| (entry.relpath, entry.md5)).collect()
}
