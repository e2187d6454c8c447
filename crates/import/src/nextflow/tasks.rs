//! Joins the trace, the log and the files of the tasks. Out: an activity for each task.

use super::task_files::TaskFiles;
use super::trace::{Columns, TraceRow};
use crate::description::{
    ActivityNumber, DescribedActivity, DescribedRun, Description, DescriptionGaps, Locations, MOST,
    NamedStates, Span,
};
use backstory_graph::model::{EntityKind, Informed, Relation};
use backstory_ordering::SmallSort;
use backstory_vocabulary::counted;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Characters of a pattern.
const PATTERN: &[u8] = b"*?[{";
/// The length of a task's hash in the trace: `8d/96c1fa`.
const HASH: usize = 9;

/// Collects the tasks of a run.
pub(super) struct TaskReader {
    locations: Locations,
    /// By the directories of the files.
    tasks: BTreeMap<Vec<u8>, TaskFiles>,
    /// By their hashes.
    rows: HashMap<Vec<u8>, TraceRow>,
    /// The command that ran the workflow, with its directory.
    launch: Option<(Vec<u8>, Vec<u8>)>,
    cut_rows: usize,
    /// Lines and rows that were taken.
    pub(super) size: usize,
}

/// A task and its activity.
struct PlacedTask {
    activity: ActivityNumber,
    workdir: Vec<u8>,
    files: TaskFiles,
    failed: bool,
}

impl TaskReader {
    pub(super) fn new(locations: Locations) -> TaskReader {
        TaskReader {
            locations,
            tasks: BTreeMap::new(),
            rows: HashMap::new(),
            launch: None,
            cut_rows: 0,
            size: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > MOST
    }

    /// The task in whose directory a file is.
    pub(super) fn task(&mut self, path: &Path) -> &mut TaskFiles {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let directory = path.parent().unwrap_or(Path::new("/"));
        let directory = directory.as_os_str().as_bytes().to_vec();
        self.tasks.entry(directory).or_default()
    }

    /// Takes the command of the log, which is in the directory in which it began.
    pub(super) fn launched(&mut self, path: &Path, command: &[u8]) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let directory = path.parent().unwrap_or(Path::new("/"));
        let directory = directory.as_os_str().as_bytes().to_vec();
        self.launch = Some((command.to_vec(), directory));
    }

    /// Takes a row of the trace.
    pub(super) fn row(&mut self, columns: &Columns, line: &[u8], is_cut: bool) {
        self.size += 1;
        match columns.row(line) {
            Some(row) => drop(self.rows.insert(row.hash.clone(), row)),
            None => self.cut_rows += usize::from(!line.is_empty()),
        }
        self.cut_rows += usize::from(is_cut);
    }

    /// All that was collected. `None` if there is no task.
    pub(super) fn finish(mut self) -> Option<DescribedRun> {
        let mut description = Description::default();
        let workflow = self.workflow(&mut description);
        let mut placed = Vec::new();
        for (directory, files) in std::mem::take(&mut self.tasks) {
            let workdir = files.workdir.clone().unwrap_or(directory);
            let row = self.rows.remove(&hash(&workdir));
            placed.push(self.place(&mut description, workdir, files, row));
        }
        let without_files = self.rows.len();
        let mut rows: Vec<TraceRow> = std::mem::take(&mut self.rows).into_values().collect();
        rows.sort_small_by(|one, other| one.hash.cmp(&other.hash));
        for row in rows {
            let workdir = row.workdir.clone().unwrap_or_default();
            let files = TaskFiles::default();
            placed.push(self.place(&mut description, workdir, files, Some(row)));
        }
        if placed.is_empty() {
            return None;
        }
        if let Some(workflow) = workflow {
            for task in &placed {
                description.inform(workflow, task.activity, Informed::Fork, None);
            }
        }
        let patterns = self.relate(&mut description, &placed);
        let gaps = self.gaps(without_files, patterns, &placed);
        Some((description, self.locations, gaps))
    }

    fn workflow(&mut self, description: &mut Description) -> Option<ActivityNumber> {
        let (command, directory) = self.launch.take()?;
        self.locations.learn_base(&directory);
        let words = command.split(|byte| *byte == b' ');
        let words: Vec<Vec<u8>> = words
            .filter(|word| !word.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        Some(description.activity(DescribedActivity {
            words,
            cwd: self.locations.path(b".").unwrap_or_default(),
            ..DescribedActivity::default()
        }))
    }

    fn place(
        &mut self,
        description: &mut Description,
        workdir: Vec<u8>,
        files: TaskFiles,
        row: Option<TraceRow>,
    ) -> PlacedTask {
        let row = row.unwrap_or_default();
        let name = files.name.clone().unwrap_or_else(|| row.name.clone());
        let exit = row.exit.or(files.exit);
        let mut notes = vec![(b"task".to_vec(), name.clone())];
        if !row.status.is_empty() {
            notes.push((b"status".to_vec(), row.status.clone()));
        }
        let name = if name.is_empty() {
            b"task".to_vec()
        } else {
            name
        };
        let activity = description.activity(DescribedActivity {
            words: match &files.script {
                // The first line of `.command.sh` has these options.
                Some(script) => vec![
                    b"bash".to_vec(),
                    b"-ue".to_vec(),
                    b"-c".to_vec(),
                    script.clone(),
                ],
                None => vec![name],
            },
            cwd: match workdir.is_empty() {
                true => Vec::new(),
                false => self.locations.path(&workdir).unwrap_or_default(),
            },
            span: Span {
                start: row.span.start.or(files.began),
                end: row.span.end.or(files.ended),
            },
            status: exit.map(|exit| (exit & 0xff) << 8),
            is_part: files.script.is_none(),
            notes,
            ..DescribedActivity::default()
        });
        PlacedTask {
            activity,
            workdir,
            failed: exit.is_some_and(|exit| exit != 0) || row.status == b"FAILED",
            files,
        }
    }

    /// Adds the relations of all tasks. Returns the number of outputs that are patterns, to which
    /// no task's input leads.
    fn relate(&mut self, description: &mut Description, placed: &[PlacedTask]) -> usize {
        let mut states = NamedStates::default();
        let makers: HashMap<&[u8], &PlacedTask> =
            placed.iter().map(|task| (&*task.workdir, task)).collect();
        let mut passed_on = HashSet::new();
        for task in placed {
            for input in &task.files.inputs {
                let Some(path) = self.locations.path(input) else {
                    continue;
                };
                let above = above(input).find_map(|directory| makers.get(directory));
                if let Some(maker) = above.filter(|maker| maker.activity != task.activity) {
                    states.made(description, maker.activity, &path, EntityKind::File);
                    passed_on.insert(maker.activity);
                }
                states.read(task.activity, Relation::Read, &path, EntityKind::File);
            }
        }
        let mut patterns = 0;
        for task in placed {
            for output in &task.files.outputs {
                if output.iter().any(|byte| PATTERN.contains(byte)) {
                    patterns += usize::from(!passed_on.contains(&task.activity));
                    continue;
                }
                let path = [&task.workdir[..], b"/", output].concat();
                if let Some(path) = self.locations.path(&path) {
                    states.made(description, task.activity, &path, EntityKind::File);
                }
            }
        }
        states.finish(description);
        let failed: HashSet<ActivityNumber> = placed
            .iter()
            .filter(|task| task.failed)
            .map(|task| task.activity)
            .collect();
        for flow in &mut description.flows {
            flow.is_certain &= flow.relation.is_use() || !failed.contains(&flow.activity);
        }
        patterns
    }

    fn gaps(
        &self,
        without_files: usize,
        patterns: usize,
        placed: &[PlacedTask],
    ) -> DescriptionGaps {
        let mut gaps = DescriptionGaps::default();
        gaps.gaps.push(
            "Nextflow has the inputs that it staged and the outputs that a process declares, and \
             neither the files that a script opened nor the copies of publishDir"
                .to_owned(),
        );
        let mut add = |count: usize, one: &str, more: &str, what: &str| {
            if count > 0 {
                gaps.gaps
                    .push(format!("{} {what}", counted(count, one, more)));
            }
        };
        let cut = placed
            .iter()
            .filter(|task| task.files.name.is_some() && !task.files.is_whole);
        add(
            without_files,
            "task has",
            "tasks have",
            "no .command.run, which names inputs and outputs",
        );
        add(
            patterns,
            "output is a pattern",
            "outputs are patterns",
            "whose files are not known",
        );
        add(
            cut.count(),
            "file .command.run is",
            "files .command.run are",
            "cut",
        );
        add(
            self.cut_rows,
            "row",
            "rows",
            "of the trace cannot be read to the end",
        );
        gaps
    }
}

/// The directories above a path, the innermost first.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memrchr_iter(b'/', path);
    ends.map(|end| &path[..end])
}

/// The hash of a task: the last two parts of its directory.
fn hash(workdir: &[u8]) -> Vec<u8> {
    let mut parts = workdir.rsplit(|byte| *byte == b'/');
    let last = parts.next().unwrap_or_default();
    let first = parts.next().unwrap_or_default();
    let mut all = [first, b"/", last].concat();
    all.truncate(HASH);
    all
}
