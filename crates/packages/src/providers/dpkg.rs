//! dpkg. Below `var/lib/dpkg`, four kinds of files matter:
//!
//! - `info/*.list`: the files of each package
//! - `info/*.md5sums`: their checksums
//! - `status`: versions and configuration files
//! - `diversions`: files that were moved away for another package

use backstory_ordering::SmallSort;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{hash, hex, text};

/// dpkg's records, read at the first look-up.
pub struct Dpkg {
    root: PathBuf,
    records: Option<Records>,
}

#[derive(Default)]
struct Records {
    /// Packages, as their files in `info` are named (`libc6:amd64`).
    packages: Vec<String>,
    /// The first package that lists a path, by the path's hash. Storing some hundred thousand paths
    /// as text would take too much memory.
    owners: HashMap<u64, u32>,
    /// The other packages that list a path. Nearly all such paths are directories.
    more: HashMap<u64, Vec<u32>>,
    versions: HashMap<String, String>,
    /// MD5 of configuration files.
    configuration: HashMap<String, [u8; 16]>,
    /// The new path of a diverted file, and the package for which it was moved away, by its
    /// original path.
    diverted: HashMap<String, String>,
    /// The package whose file took the place of a diverted one.
    diverting: HashMap<String, String>,
    sums: HashMap<u32, HashMap<String, [u8; 16]>>,
}

impl Dpkg {
    /// The records below `root`.
    pub fn new(root: &Path) -> Dpkg {
        Dpkg {
            root: root.join("var/lib/dpkg"),
            records: None,
        }
    }
}

impl Provider for Dpkg {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let (name, version, _) = self.look_up(path, |records, _, path| records.listed(path))?;
        let short = name.split(':').next().unwrap_or(&name);
        Some(PackageId::of_system("dpkg", short, version))
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        self.look_up(path, Records::owner)
    }
}

impl Dpkg {
    /// Looks up a path as it is, then with or without `/usr`. Packages that were built before
    /// `/usr` was merged may list a file in `/usr/lib` as `/lib`.
    fn look_up<T>(
        &mut self,
        path: &Path,
        find: impl Fn(&mut Records, &Path, &str) -> Option<T>,
    ) -> Option<T> {
        let path = path.to_str()?;
        let root = &self.root;
        let records = self.records.get_or_insert_with(|| Records::read(root));
        if records.packages.is_empty() {
            return None;
        }
        let other = match path.strip_prefix("/usr") {
            Some(rest) => rest.to_owned(),
            None => format!("/usr{path}"),
        };
        [path, &other]
            .into_iter()
            .find_map(|path| find(records, root, path))
    }
}

impl Records {
    fn read(root: &Path) -> Records {
        let mut records = Records::default();
        let Ok(info) = fs::read_dir(root.join("info")) else {
            return records;
        };
        let mut lists: Vec<PathBuf> = info.flatten().map(|entry| entry.path()).collect();
        lists.retain(|path| path.extension().is_some_and(|e| e == "list"));
        lists.sort_small();
        for list in lists {
            let (Some(name), Ok(bytes)) = (
                list.file_stem().and_then(|n| n.to_str()),
                regular::read(&list),
            ) else {
                continue;
            };
            let number = records.packages.len() as u32;
            records.packages.push(name.to_owned());
            for path in bytes.split(|b| *b == b'\n').filter(|path| path.len() > 2) {
                match records.owners.entry(hash(path)) {
                    Entry::Vacant(first) => drop(first.insert(number)),
                    Entry::Occupied(_) => records.more.entry(hash(path)).or_default().push(number),
                }
            }
        }
        records.read_status(&root.join("status"));
        records.read_diversions(&root.join("diversions"));
        records
    }

    /// Reads the status of packages one after the other: the file has megabytes.
    fn read_status(&mut self, path: &Path) {
        let Ok(file) = regular::open(path) else {
            return;
        };
        let mut paragraph = String::new();
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            if line.is_empty() {
                self.take_status(&paragraph);
                paragraph.clear();
            } else {
                paragraph.push_str(&line);
                paragraph.push('\n');
            }
        }
        self.take_status(&paragraph);
    }

    /// Notes the version and the configuration files of a package.
    fn take_status(&mut self, paragraph: &str) {
        let field = |name: &str| {
            let mut lines = paragraph.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let (Some(name), Some(version)) = (field("Package"), field("Version")) else {
            return;
        };
        if let Some(architecture) = field("Architecture") {
            self.versions
                .insert(format!("{name}:{architecture}"), version.to_owned());
        }
        self.versions.insert(name.to_owned(), version.to_owned());
        let files = paragraph
            .lines()
            .skip_while(|line| *line != "Conffiles:")
            .skip(1);
        for line in files.take_while(|line| line.starts_with(' ')) {
            let mut words = line.split_whitespace();
            if let (Some(file), Some(sum)) = (words.next(), words.next().and_then(hex)) {
                self.configuration.insert(file.to_owned(), sum);
            }
        }
    }

    /// Reads diversions. Each has three lines: original path, new path, package.
    fn read_diversions(&mut self, path: &Path) {
        let all = text(path).unwrap_or_default();
        let lines: Vec<&str> = all.lines().collect();
        for three in lines.chunks_exact(3) {
            let [from, to, by] = [three[0], three[1], three[2]].map(str::to_owned);
            self.diverting.insert(from.clone(), by);
            self.diverted.insert(to, from);
        }
    }

    /// The name and version of the package that lists a path, and the path as it is listed.
    fn listed(&mut self, path: &str) -> Option<(String, String, (u32, String))> {
        let listed = self
            .diverted
            .get(path)
            .map_or(path, String::as_str)
            .to_owned();
        let was_moved = listed != path;
        let by = self.diverting.get(&listed).cloned();
        let hash = hash(listed.as_bytes());
        let first = self.owners.get(&hash)?;
        let others = self.more.get(&hash).into_iter().flatten();
        let number = std::iter::once(first)
            .chain(others)
            .copied()
            .find(|number| {
                let name = &self.packages[*number as usize];
                let short = name.split(':').next().unwrap_or(name);
                // At a diverted path lies the diverting package's file. The files of other packages
                // were moved.
                by.as_ref().is_none_or(|by| (by == short) != was_moved)
            })?;
        let name = self.packages[number as usize].clone();
        let version = self.versions.get(&name).cloned()?;
        Some((name, version, (number, listed)))
    }

    fn owner(&mut self, root: &Path, path: &str) -> Option<Owner> {
        let (name, version, (number, listed)) = self.listed(path)?;
        let sums = self
            .sums
            .entry(number)
            .or_insert_with(|| read_sums(&root.join("info").join(format!("{name}.md5sums"))));
        let sum = sums
            .get(listed.trim_start_matches('/'))
            .or_else(|| self.configuration.get(&listed));
        Some(Owner {
            manager: "dpkg",
            checksum: sum.copied().map(Checksum::Md5),
            name,
            version,
        })
    }
}

fn read_sums(path: &Path) -> HashMap<String, [u8; 16]> {
    let all = text(path).unwrap_or_default();
    let lines = all.lines().filter_map(|line| line.split_once("  "));
    lines
        .filter_map(|(sum, file)| Some((file.to_owned(), hex(sum)?)))
        .collect()
}
