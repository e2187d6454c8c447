//! Python environments: `site-packages` of virtual environments, of users, of conda and of
//! interpreters that people installed themselves.
//!
//! `NAME-VERSION.dist-info/RECORD` lists a distribution's files, and `METADATA` has its name in its
//! own spelling. Old distributions have `NAME-VERSION-pyX.Y.egg-info`. Of an editable installation
//! only the pointer lies in `site-packages`: its sources are the user's own, wherever they are.
//! `pyvenv.cfg` in a virtual environment names the version of Python.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::pip::fields;
use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{Remembered, above, hash, split_version, text, within};

/// The environments that were looked up.
#[derive(Default)]
pub struct PythonSites {
    sites: Remembered<Site>,
    /// The `site-packages` and the version of Python, by the directory of a virtual environment.
    environments: Remembered<Option<VirtualEnvironment>>,
}

/// A virtual environment.
struct VirtualEnvironment {
    python: String,
    sites: Vec<PathBuf>,
}

/// A directory with distributions.
struct Site {
    label: &'static str,
    environment: Option<PathBuf>,
    distributions: Vec<(String, String)>,
    /// The number of the distribution that lists a file, by the hash of the file's path.
    files: HashMap<u64, u32>,
    /// The number of a distribution, by the first component of its files' paths.
    tops: HashMap<String, u32>,
}

impl Provider for PythonSites {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let inner = above(path, |name| {
            matches!(name, "site-packages" | "dist-packages")
        });
        let inner: Vec<PathBuf> = inner.map(Path::to_owned).collect();
        let around = path
            .ancestors()
            .skip(1)
            .find(|dir| {
                self.environments
                    .of(dir, VirtualEnvironment::read)
                    .is_some()
            })
            .map(Path::to_owned);
        let environment = around
            .as_ref()
            .and_then(|dir| self.environments.of(dir, VirtualEnvironment::read).as_ref());
        let scripts = environment
            .map(|found| found.sites.clone())
            .unwrap_or_default();
        for site in inner.iter().chain(&scripts) {
            if let Some(found) = self.sites.of(site, Site::read).package(site, path) {
                return Some(found);
            }
        }
        let dir = around?;
        let python = &environment?.python;
        is_of_environment(path.strip_prefix(&dir).ok()?).then(|| PackageId {
            environment: Some(dir.clone()),
            label: "venv".to_owned(),
            ..PackageId::new("venv", "python", python.clone())
        })
    }
}

/// True for the files with which an environment is made, by their path in it. Other files in an
/// environment's directory are the user's own: some people make an environment in their project's
/// directory.
fn is_of_environment(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str());
    let (first, second) = (parts.next(), parts.next());
    let Some(first) = first.and_then(|part| part.to_str()) else {
        return false;
    };
    let second = second.and_then(|part| part.to_str()).unwrap_or_default();
    match first {
        "pyvenv.cfg" => true,
        "bin" => ["python", "pip", "activate", "Activate", "deactivate"]
            .iter()
            .any(|start| second.starts_with(start)),
        "lib" | "lib64" | "include" => second.starts_with("python") || second.starts_with("pypy"),
        _ => false,
    }
}

impl VirtualEnvironment {
    /// `None` if the directory is no virtual environment.
    fn read(dir: &Path) -> Option<VirtualEnvironment> {
        let configuration = text(&dir.join("pyvenv.cfg"))?;
        let value = |wanted: &str| {
            configuration.lines().find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == wanted).then(|| value.trim().to_owned())
            })
        };
        // virtualenv and uv write `version_info = 3.11.7.final.0` or `3.11.7`.
        let version = value("version")
            .or_else(|| value("version_info"))
            .unwrap_or_default();
        let plain = version
            .split(".final")
            .next()
            .unwrap_or_default()
            .to_owned();
        let libraries = fs::read_dir(dir.join("lib"))
            .into_iter()
            .flatten()
            .flatten();
        Some(VirtualEnvironment {
            python: plain,
            sites: libraries
                .map(|entry| entry.path().join("site-packages"))
                .collect(),
        })
    }
}

impl Site {
    fn read(site: &Path) -> Site {
        let environment = site.ancestors().nth(3).map(Path::to_owned);
        let has = |file: &str| {
            environment
                .as_ref()
                .is_some_and(|dir| dir.join(file).exists())
        };
        let (label, environment) = match () {
            () if has("pyvenv.cfg") => ("venv", environment),
            () if !site.exists() && is_named_venv(environment.as_deref()) => ("venv", environment),
            () if has("conda-meta") => ("conda", environment),
            () if environment
                .as_ref()
                .is_some_and(|dir| dir.ends_with(".local")) =>
            {
                ("user", environment)
            }
            () => ("pip", None),
        };
        let mut found = Site {
            label,
            environment,
            distributions: Vec::new(),
            files: HashMap::new(),
            tops: HashMap::new(),
        };
        for entry in fs::read_dir(site).into_iter().flatten().flatten() {
            found.add(site, &entry.path());
        }
        found
    }

    /// Adds a distribution, if `records` is the directory or the file of its records.
    fn add(&mut self, site: &Path, records: &Path) -> Option<()> {
        let base = records.file_name()?.to_str()?;
        let (stem, modern) = match base.strip_suffix(".dist-info") {
            Some(stem) => (stem, true),
            None => (base.strip_suffix(".egg-info")?, false),
        };
        let (name, version) = split_version(stem)?;
        // `six-1.16.0-py3.11.egg-info`
        let version = version.split("-py").next().unwrap_or_default().to_owned();
        let metadata = match (modern, records.is_file()) {
            (true, _) => text(&records.join("METADATA")),
            (false, false) => text(&records.join("PKG-INFO")),
            (false, true) => text(records),
        };
        let own_name = metadata.and_then(|all| {
            all.lines()
                .find_map(|line| Some(line.strip_prefix("Name: ")?.trim().to_owned()))
        });
        let number = self.distributions.len() as u32;
        self.distributions.push((own_name.unwrap_or(name), version));
        self.tops.insert(base.to_owned(), number);
        let listed = match modern {
            true => text(&records.join("RECORD")).unwrap_or_default(),
            false => text(&records.join("installed-files.txt")).unwrap_or_default(),
        };
        // The files of a RECORD are relative to the site, the older list's to its own directory.
        let from = if modern { site } else { records };
        for line in listed.lines() {
            let file = match modern {
                true => fields(line).map(|(file, _)| file),
                false => Some(line.to_owned()),
            };
            let Some(file) = file.map(|file| within(from, &file)) else {
                continue;
            };
            self.files
                .insert(hash(file.as_os_str().as_encoded_bytes()), number);
            if let Some(top) = top_of(site, &file) {
                self.tops.entry(top).or_insert(number);
            }
        }
        let tops = text(&records.join("top_level.txt")).unwrap_or_default();
        for top in tops.lines() {
            self.tops.entry(top.to_owned()).or_insert(number);
        }
        Some(())
    }

    fn package(&self, site: &Path, path: &Path) -> Option<PackageId> {
        let listed = self.files.get(&hash(path.as_os_str().as_encoded_bytes()));
        // Python compiles modules later: the record does not have all of `__pycache__`.
        let number = match listed {
            Some(number) => Some(number),
            None => self.tops.get(&top_of(site, path)?),
        };
        let (name, version) = match number {
            Some(number) => self.distributions.get(*number as usize)?.clone(),
            // All records are gone, and the first component is all there is.
            None if !site.exists() => named_by_path(&top_of(site, path)?),
            None => return None,
        };
        Some(PackageId {
            provider: if self.label == "conda" {
                "conda"
            } else {
                "pip"
            }
            .to_owned(),
            name,
            version,
            label: self.label.to_owned(),
            environment: self.environment.clone(),
        })
    }
}

/// True for the names that people give to virtual environments.
fn is_named_venv(environment: Option<&Path>) -> bool {
    let name = environment.and_then(Path::file_name);
    name.is_some_and(|name| {
        [".venv", "venv", ".env", "env"]
            .iter()
            .any(|one| name == *one)
    })
}

/// The first component of a path below `site`, without the ending of a module. `None` for a path
/// elsewhere and for `__pycache__`.
fn top_of(site: &Path, path: &Path) -> Option<String> {
    let first = path.strip_prefix(site).ok()?.components().next()?;
    let first = first.as_os_str().to_str()?;
    let module = first.strip_suffix(".py").unwrap_or(first);
    (module != "__pycache__").then(|| module.to_owned())
}

/// `numpy`, `numpy.libs` and `numpy-1.26.4.dist-info` as name and version.
fn named_by_path(top: &str) -> (String, String) {
    match top.strip_suffix(".dist-info").and_then(split_version) {
        Some(named) => named,
        None => (
            top.split('.').next().unwrap_or(top).to_owned(),
            String::new(),
        ),
    }
}
