//! Compares what survived of a run's files with what the surviving log explains.

use crate::crash::crash_state::{DiskImage, SECTOR};
use crate::crash::journal_disk::{DATA, LOG};
use backstory_eventlog::Log;
use backstory_files::Ident;
use backstory_graph::FinalState;
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::EntityKind;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names of the files that a content came from, and the name of the file that it was made for.
type SectorOrigin = (String, Vec<String>);

/// The origins that the sectors of a content name. Sectors that were never written have none.
fn origins(content: &[u8]) -> BTreeSet<SectorOrigin> {
    let line = |sector: &[u8]| {
        let line = sector.split(|byte| *byte == b'\n').next()?;
        let text = std::str::from_utf8(line).ok()?;
        let (name, inputs) = text.strip_prefix("sector of ")?.split_once(':')?;
        let inputs = inputs.split_whitespace().map(str::to_owned).collect();
        Some((name.to_owned(), inputs))
    };
    content.chunks(SECTOR).filter_map(line).collect()
}

/// The state of the files after the crash, for the fold.
struct SurvivingState<'a> {
    image: &'a DiskImage,
    data: &'a Path,
    device: u64,
}

impl FinalState for SurvivingState<'_> {
    fn identity(&self, path: &[u8], _: bool) -> Option<Option<Ident>> {
        let name = path.strip_prefix(self.data.as_os_str().as_bytes())?;
        let name = std::ffi::OsStr::from_bytes(name.strip_prefix(b"/")?);
        let file = self.image.get(&(DATA, name.to_owned()));
        Some(file.map(|file| Ident {
            dev: self.device,
            ino: file.inode,
            size: file.bytes.len() as i64,
            mtime: file.changed,
            ctime: file.changed,
            birth: file.birth,
            mode: 0o100_644,
            nlink: 1,
        }))
    }
}

/// The graph of the surviving log, as the next command would index it.
fn graph(image: &DiskImage, data: &Path, device: u64) -> MemorySink {
    let mut graph = MemorySink::default();
    let mut logs = image.iter().filter(|((disk, name), file)| {
        let name = name.as_bytes();
        *disk == LOG
            && (name.ends_with(b".log") || name.ends_with(b".log.part"))
            && !file.bytes.is_empty()
    });
    let Some((_, log)) = logs.next() else {
        return graph;
    };
    let directory = tempfile::tempdir().unwrap();
    let (part, finished) = (
        directory.path().join("r.log.part"),
        directory.path().join("r.log"),
    );
    std::fs::write(&part, &log.bytes).unwrap();
    // A log that lost its first sectors is no log.
    if backstory_session::recover(None, &part, &finished).is_err() {
        return graph;
    }
    let log = Log::open(&finished).unwrap();
    let state = SurvivingState {
        image,
        data,
        device,
    };
    let Ok(()) = backstory_graph::fold(log.header(), log.end(), log.events(), &state, &mut graph);
    graph
}

/// The comparison of surviving contents with what the surviving log explains.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The number of contents.
    pub compared: usize,
    /// The contents that are not explained, in sentences.
    pub unexplained: Vec<String>,
}

impl Comparison {
    /// Adds another comparison.
    pub fn add(&mut self, other: Comparison) {
        self.compared += other.compared;
        self.unexplained.extend(other.unexplained);
    }
}

/// Which changes of names the log must explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renames {
    /// All that survived.
    Explained,
    /// The content must be explained, by its name before the rename at least. A flush by another
    /// process commits the journal of the file system, and no mode promises an order for that.
    MayBeMissing,
}

/// Compares what survived of a run's files with what the surviving log explains.
pub fn compare(image: &DiskImage, data: &Path, device: u64, renames: Renames) -> Comparison {
    let mut comparison = Comparison::default();
    let claims: Vec<(&std::ffi::OsStr, BTreeSet<SectorOrigin>)> = image
        .iter()
        .filter(|((disk, _), _)| *disk == DATA)
        .map(|((_, name), file)| (name.as_os_str(), origins(&file.bytes)))
        .filter(|(_, origins)| !origins.is_empty())
        .collect();
    if claims.is_empty() {
        return comparison;
    }
    let graph = graph(image, data, device);
    let search = LineageSearch::new(&graph, Follow::default());
    let mut versions: HashMap<Vec<u8>, Vec<BTreeSet<&[u8]>>> = HashMap::new();
    for entity in graph
        .entities
        .values()
        .filter(|e| e.kind == EntityKind::File)
    {
        let ancestors = search.ancestors(GraphNode::Entity(entity.id));
        if ancestors.activities().next().is_none() {
            continue;
        }
        let sources: BTreeSet<&[u8]> = ancestors
            .entities()
            .flat_map(|id| {
                let source = &graph.entities[&id];
                std::iter::once(&*source.path).chain(source.aliases.iter().map(|a| &**a))
            })
            .collect();
        for name in std::iter::once(&entity.path).chain(&entity.aliases) {
            versions
                .entry(name.to_vec())
                .or_default()
                .push(sources.clone());
        }
    }
    let path = |name: &std::ffi::OsStr| data.join(name).into_os_string().as_bytes().to_vec();
    for (name, origins) in claims {
        for (made_for, inputs) in origins {
            comparison.compared += 1;
            let before = path(format!("{made_for}.").as_ref());
            let is_known = |known: &&Vec<u8>| {
                **known == path(name)
                    || renames == Renames::MayBeMissing && known.starts_with(&before)
            };
            let known = versions.keys().filter(is_known);
            let known: Vec<&BTreeSet<&[u8]>> = known.flat_map(|known| &versions[known]).collect();
            let inputs: Vec<Vec<u8>> = inputs.iter().map(|i| path(i.as_ref())).collect();
            let explains = |sources: &&BTreeSet<&[u8]>| {
                inputs
                    .iter()
                    .all(|input| sources.contains(input.as_slice()))
            };
            if !known.iter().any(explains) {
                let (name, known) = (name.display(), known.len());
                let inputs = inputs.iter().map(|i| i.escape_ascii().to_string());
                let inputs = inputs.collect::<Vec<_>>().join(" ");
                comparison.unexplained.push(format!(
                    "{name} has a content made for {made_for} from {inputs}; known versions: {known}"
                ));
            }
        }
    }
    comparison
}
