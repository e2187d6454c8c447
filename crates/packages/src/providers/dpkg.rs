//! dpkg. Below `var/lib/dpkg`, four kinds of files matter:
//!
//! - `info/*.list`: the files of each package
//! - `info/*.md5sums`: their checksums
//! - `status`: versions and configuration files
//! - `diversions`: files that were moved away for another package

mod index;
mod path_table;

use backstory_ordering::SmallSort;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{hex, text};
use index::Stamp;
use path_table::{PathTable, path_hash};

/// dpkg's records, read at the first look-up.
pub struct Dpkg {
    root: PathBuf,
    /// The file with the index of the lists, if there may be one.
    index: Option<PathBuf>,
    records: Option<Records>,
}

/// A package with a list.
struct ListedPackage {
    /// As its files in `info` are named (`libc6:amd64`).
    name: String,
    /// `None` if dpkg's status lacks it.
    version: Option<String>,
}

/// The lists of all packages.
struct Lists {
    packages: Vec<ListedPackage>,
    /// The packages that list a path, by their places. Nearly all paths with several packages are
    /// directories.
    paths: PathTable,
}

struct Records {
    lists: Lists,
    /// MD5 of configuration files, read at the first question for a checksum.
    configuration: Option<HashMap<String, [u8; 16]>>,
    /// The new path of a diverted file, and the package for which it was moved away, by its
    /// original path.
    diverted: HashMap<String, String>,
    /// The package whose file took the place of a diverted one.
    diverting: HashMap<String, String>,
    sums: HashMap<u32, HashMap<String, [u8; 16]>>,
}

impl Dpkg {
    /// The records below `root`. `index`: a file of which the lists may be read, and that is made
    /// of them.
    pub fn new(root: &Path, index: Option<&Path>) -> Dpkg {
        Dpkg {
            root: root.join("var/lib/dpkg"),
            index: index.map(Path::to_owned),
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
        let (root, index) = (&self.root, self.index.as_deref());
        let read = || Records::read(root, index);
        let records = self.records.get_or_insert_with(read);
        if records.lists.packages.is_empty() {
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

impl Lists {
    /// The lists below `root`, from the index if it is of their present state. Otherwise the index
    /// is made anew.
    fn read(root: &Path, index: Option<&Path>) -> Lists {
        let index = index.and_then(|path| Some((path, Stamp::of(root)?)));
        if let Some((path, stamp)) = &index
            && let Some(lists) = index::read(path, stamp)
        {
            return lists;
        }
        let lists = Lists::read_all(root);
        if let Some((path, stamp)) = &index {
            // Without the index, the next question takes as long as this one.
            let _ = index::write(path, root, stamp, &lists);
        }
        lists
    }

    fn read_all(root: &Path) -> Lists {
        let info = fs::read_dir(root.join("info")).into_iter().flatten();
        let mut files: Vec<PathBuf> = info.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|e| e == "list"));
        files.sort_small();
        let (mut packages, mut pairs) = (Vec::new(), Vec::new());
        for file in files {
            let (Some(name), Ok(bytes)) = (
                file.file_stem().and_then(|n| n.to_str()),
                regular::read(&file),
            ) else {
                continue;
            };
            let number = packages.len() as u32;
            packages.push(ListedPackage {
                name: name.to_owned(),
                version: None,
            });
            let paths = lines(&bytes).filter(|path| path.len() > 2);
            pairs.extend(paths.map(|path| (path_hash(path), number)));
        }
        if !packages.is_empty() {
            let status = Status::read(root);
            for package in &mut packages {
                package.version = status.versions.get(&package.name).cloned();
            }
        }
        Lists {
            packages,
            paths: PathTable::new(&pairs),
        }
    }
}

/// The lines of a file, as byte strings.
fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', file).chain([file.len()]);
    let mut from = 0;
    ends.map(move |end| {
        let line = &file[from..end];
        from = end + 1;
        line
    })
}

/// The facts in the file of all packages' states.
#[derive(Default)]
struct Status {
    /// By the name of a package, and by the name with the architecture.
    versions: HashMap<String, String>,
    /// MD5 of configuration files.
    configuration: HashMap<String, [u8; 16]>,
}

impl Status {
    /// Reads the status of packages one after the other: the file has megabytes.
    fn read(root: &Path) -> Status {
        let mut status = Status::default();
        let Ok(file) = regular::open(root.join("status")) else {
            return status;
        };
        let mut paragraph = String::new();
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            if line.is_empty() {
                status.take(&paragraph);
                paragraph.clear();
            } else {
                paragraph.push_str(&line);
                paragraph.push('\n');
            }
        }
        status.take(&paragraph);
        status
    }

    /// Notes the version and the configuration files of a package.
    fn take(&mut self, paragraph: &str) {
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
}

impl Records {
    fn read(root: &Path, index: Option<&Path>) -> Records {
        let mut records = Records {
            lists: Lists::read(root, index),
            configuration: None,
            diverted: HashMap::new(),
            diverting: HashMap::new(),
            sums: HashMap::new(),
        };
        records.read_diversions(&root.join("diversions"));
        records
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
        let numbers = self.lists.paths.packages(path_hash(listed.as_bytes()));
        let number = numbers.into_iter().find(|number| {
            let Some(package) = self.lists.packages.get(*number as usize) else {
                return false;
            };
            let short = package.name.split(':').next().unwrap_or(&package.name);
            // At a diverted path lies the diverting package's file. The files of other packages
            // were moved.
            by.as_ref().is_none_or(|by| (by == short) != was_moved)
        })?;
        let package = &self.lists.packages[number as usize];
        let version = package.version.clone()?;
        Some((package.name.clone(), version, (number, listed)))
    }

    fn owner(&mut self, root: &Path, path: &str) -> Option<Owner> {
        let (name, version, (number, listed)) = self.listed(path)?;
        let sums = self
            .sums
            .entry(number)
            .or_insert_with(|| read_sums(&root.join("info").join(format!("{name}.md5sums"))));
        let sum = match sums.get(listed.trim_start_matches('/')) {
            Some(sum) => Some(*sum),
            None => {
                let read = || Status::read(root).configuration;
                let all = self.configuration.get_or_insert_with(read);
                all.get(&listed).copied()
            }
        };
        Some(Owner {
            manager: "dpkg",
            checksum: sum.map(Checksum::Md5),
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
