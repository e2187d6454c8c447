//! The inventory of a view: which results were made from which files and packages by which steps.
//! The formats of standards are written from it.
//!
//! A package stands for all of its files.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::job_rank::JobRank;
use backstory_query::{Content, ContentRole};
use backstory_store::facts::Package;

use crate::file_contents::{Checksums, content_size};
use crate::{Result, View};

/// The inventory of a view.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Versions of files, in the order of their first use.
    pub items: Vec<InventoryFile>,
    /// Packages of package managers.
    pub packages: Vec<Package>,
    /// The steps, which refer to files and packages by number.
    pub steps: Vec<InventoryStep>,
}

/// A version of a file.
#[derive(Debug)]
pub struct InventoryFile {
    /// The number of its run in the view.
    pub run: usize,
    /// Absolute path.
    pub path: Bytes,
    /// 0 for the state before the run.
    pub version: u32,
    /// It is a result: made, and still there.
    pub result: bool,
    /// A step made it; it may be gone by the run's end.
    pub made: bool,
    /// A program or library.
    pub software: bool,
    /// It belongs to the system or to a tool.
    pub tool: bool,
    /// Checksums, if its content is available.
    pub sums: Option<Checksums>,
}

/// A step with its inputs and outputs.
#[derive(Debug)]
pub struct InventoryStep {
    /// Unique among the steps.
    pub name: String,
    /// Lines of shell, for the step's own directory.
    pub lines: Vec<String>,
    /// Its directory.
    pub cwd: Bytes,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Which of the view's runs it is from.
    pub run: usize,
    /// Numbers of items that it read.
    pub inputs: Vec<usize>,
    /// Numbers of items that it made.
    pub outputs: Vec<usize>,
    /// Numbers of packages that it used.
    pub packages: Vec<usize>,
    /// Its place in a job of a launcher of parallel work.
    pub job_rank: Option<JobRank>,
}

impl Inventory {
    /// Makes the inventory. Each content is read once.
    pub fn of(view: &View) -> Result<Inventory> {
        Inventory::with_sums(view, |_| true)
    }

    /// The same, with the checksums of some files only. The contents of the others are not read.
    pub fn with_sums(view: &View, wanted_sums: impl Fn(&Content) -> bool) -> Result<Inventory> {
        let wanted = Wanted::of(view);
        // Files that are output of no step are left out: the output of the whole run, and files
        // that came and went.
        let outputs: HashSet<(usize, &Bytes)> = view
            .workflow
            .steps
            .iter()
            .flat_map(|step| step.outputs.iter().map(|path| (step.run, path)))
            .collect();
        let mut inventory = Inventory::default();
        let mut at_path: BTreeMap<(usize, Bytes), Vec<usize>> = BTreeMap::new();
        let mut package_at: BTreeMap<(usize, Bytes), usize> = BTreeMap::new();
        let mut packages: BTreeMap<Package, usize> = BTreeMap::new();
        let mut summed = Vec::new();
        for run in 0..view.runs.len() {
            for content in &view.contents.run(run).files {
                if !is_file(content) || !wanted.has(run, &content.path) {
                    continue;
                }
                let made = is_made(content);
                if let Some(package) = used_package(content) {
                    let next = packages.len();
                    let at = *packages.entry(unverified(package)).or_insert(next);
                    package_at.insert((run, content.path.clone()), at);
                    continue;
                }
                if made && !outputs.contains(&(run, &content.path)) {
                    continue;
                }
                at_path
                    .entry((run, content.path.clone()))
                    .or_default()
                    .push(inventory.items.len());
                inventory.items.push(InventoryFile {
                    run,
                    path: content.path.clone(),
                    version: content.version,
                    result: content.role == ContentRole::Output
                        && view
                            .requested
                            .as_ref()
                            .is_none_or(|asked| *asked == content.path),
                    made,
                    tool: backstory_workflow::paths::is_tool(&content.path),
                    software: matches!(content.role, ContentRole::Program | ContentRole::Library),
                    sums: None,
                });
                if wanted_sums(content) {
                    summed.push((inventory.items.len() - 1, content));
                }
            }
        }
        let sizes = summed.iter().map(|(_, content)| content_size(content));
        view.contents.meter.expect(sizes.sum());
        for (at, content) in summed {
            let sums = view.contents.sums(content)?;
            if sums.is_none() {
                view.contents.meter.add(content_size(content));
            }
            inventory.items[at].sums = sums;
        }
        let mut all: Vec<(Package, usize)> = packages.into_iter().collect();
        all.sort_small_by_key(|(_, at)| *at);
        inventory.packages = all.into_iter().map(|(package, _)| package).collect();
        inventory.steps = steps(view, &inventory.items, &at_path, &package_at);
        Ok(inventory)
    }
}

/// The package without its verification, so that it is listed once whether or not each file was
/// compared.
fn unverified(package: &Package) -> Package {
    Package {
        verified: false,
        ..package.clone()
    }
}

/// A file of a package that a run used.
#[derive(Debug)]
pub struct PackageFile<'v> {
    /// The package.
    pub package: &'v Package,
    /// Absolute path.
    pub path: &'v Bytes,
    /// Checksums, if its content is available.
    pub sums: Option<Checksums>,
}

/// The files of packages that the runs used, each version once. Each content is read.
pub fn package_files(view: &View) -> Result<Vec<PackageFile<'_>>> {
    let wanted = Wanted::of(view);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for run in 0..view.runs.len() {
        for content in &view.contents.run(run).files {
            let Some(package) = used_package(content) else {
                continue;
            };
            let is_wanted = is_file(content) && wanted.has(run, &content.path);
            if is_wanted && seen.insert((&content.path, content.ident)) {
                found.push((package, content));
            }
        }
    }
    let sizes = found.iter().map(|(_, content)| content_size(content));
    view.contents.meter.expect(sizes.sum());
    let found = found.into_iter().map(|(package, content)| {
        let sums = view.contents.sums(content)?;
        if sums.is_none() {
            view.contents.meter.add(content_size(content));
        }
        Ok(PackageFile {
            package,
            path: &content.path,
            sums,
        })
    });
    found.collect()
}

/// The package of a file that a run used. A run that installed a package made the package's files.
fn used_package(content: &Content) -> Option<&Package> {
    content.availability.package().filter(|_| !is_made(content))
}

fn is_made(content: &Content) -> bool {
    matches!(
        content.role,
        ContentRole::Output | ContentRole::Intermediate
    )
}

fn is_file(content: &Content) -> bool {
    use backstory_graph::model::EntityKind;
    content.kind == EntityKind::File
}

fn steps(
    view: &View,
    items: &[InventoryFile],
    at_path: &BTreeMap<(usize, Bytes), Vec<usize>>,
    package_at: &BTreeMap<(usize, Bytes), usize>,
) -> Vec<InventoryStep> {
    let versions = |run: usize, path: &Bytes| {
        at_path
            .get(&(run, path.clone()))
            .map_or(&[][..], Vec::as_slice)
    };
    let steps = view.workflow.steps.iter().zip(&view.step_ranks);
    let steps = steps.map(|(step, job_rank)| {
        let run = step.run;
        let outputs = step.outputs.iter().flat_map(|path| {
            let made = versions(run, path)
                .iter()
                .copied()
                .filter(|&at| items[at].made);
            made.max_by_key(|&at| items[at].version)
        });
        // Of several versions, the step read the one that an earlier step made, else the one before
        // the run.
        let inputs = step.inputs.iter().chain(&step.tools).flat_map(|path| {
            let all = versions(run, path).iter().copied();
            all.max_by_key(|&at| (items[at].made, items[at].version))
        });
        let packages = step.inputs.iter().chain(&step.tools);
        let packages: BTreeSet<usize> = packages
            .filter_map(|path| package_at.get(&(run, path.clone())).copied())
            .into_tree();
        InventoryStep {
            name: step.name.clone(),
            lines: step
                .lines
                .iter()
                .map(|line| line.shell(&line.cwd))
                .collect(),
            cwd: step.lines[0].cwd.clone(),
            start: step.start,
            end: step.end,
            run,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            packages: packages.into_iter().collect(),
            job_rank: job_rank.clone(),
        }
    });
    steps.collect()
}

/// The files that belong to the requested file; `None`: all.
struct Wanted(Option<HashSet<(usize, Bytes)>>);

impl Wanted {
    fn of(view: &View) -> Wanted {
        let Some(asked) = &view.requested else {
            return Wanted(None);
        };
        let mut wanted = HashSet::new();
        for step in &view.workflow.steps {
            let paths = step.inputs.iter().chain(&step.tools).chain(&step.outputs);
            wanted.extend(paths.map(|path| (step.run, path.clone())));
        }
        wanted.extend((0..view.runs.len()).map(|run| (run, asked.clone())));
        Wanted(Some(wanted))
    }

    fn has(&self, run: usize, path: &Bytes) -> bool {
        self.0
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&(run, path.clone())))
    }
}
