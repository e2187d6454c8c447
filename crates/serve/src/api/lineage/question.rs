//! The question of a request about the lineage of a file, and its answer.

use backstory_ordering::SmallSort;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_account::{Account, Narrowing};
use backstory_query::answer::{Lineage, Scope};
use backstory_query::{self as query, Direction, Globs, LineageKey, subject};
use backstory_store::EntityKey;

use super::draft::{Fold, GraphDraft};
use super::graph_rows::LineageView;
use super::{byte_marks, command_graph, process_graph};
use crate::api::file_view::absolute;
use crate::api::ids;
use crate::api::run_row::RunRow;
use crate::api::run_view::run_id;
use crate::params::Params;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;

/// Nodes of an answer, usually and at most.
const USUAL: usize = 500;
const MOST: usize = 20_000;

/// The most processes and versions that stand behind a graph of commands.
const BEHIND: usize = 20_000;

/// The parameters of a question.
pub const PARAMETERS: [&str; 13] = [
    "path",
    "version",
    "run",
    "direction",
    "level",
    "depth",
    "nodes",
    "possible",
    "lookups",
    "exclude",
    "only",
    "through",
    "noise",
];

/// The question of a request.
pub struct LineageQuestion {
    path: Option<Vec<u8>>,
    version: Option<String>,
    run: Option<String>,
    direction: Direction,
    of_commands: bool,
    depth: Option<usize>,
    nodes: usize,
    possible: bool,
    lookups: bool,
    exclude: Vec<String>,
    only: Vec<String>,
    through: Vec<String>,
    /// Files of packages and of the system are shown one by one.
    noise: bool,
}

/// A draft of the graph.
struct DraftedGraph {
    draft: GraphDraft,
    /// The counted nodes.
    folds: Vec<Fold>,
    /// There is more than the draft has.
    is_cut: bool,
    /// Reasons why it lacks something, one sentence each.
    warnings: Vec<String>,
}

impl LineageQuestion {
    /// Reads the parameters.
    pub fn new(params: &Params) -> Answer<LineageQuestion> {
        let path = params.bytes("path").map(|_| absolute(params)).transpose()?;
        let direction = params.word("direction", &["of", "uses"])?;
        let depth = params.number("depth", 0, 1000)?;
        Ok(LineageQuestion {
            path,
            version: params.text("version")?.map(str::to_owned),
            run: params.text("run")?.map(str::to_owned),
            direction: match direction {
                Some("uses") => Direction::Forth,
                _ => Direction::Back,
            },
            of_commands: params.word("level", &["command", "process"])? != Some("process"),
            depth: (depth > 0).then_some(depth),
            nodes: params.number("nodes", USUAL, MOST)?.max(1),
            possible: params.flag("possible")?.unwrap_or(true),
            lookups: params.flag("lookups")?.unwrap_or(false),
            exclude: params.texts("exclude")?,
            only: params.texts("only")?,
            through: params.texts("through")?,
            noise: params.word("noise", &["fold", "show"])? == Some("show"),
        })
    }

    /// The same question about the nearest nodes only.
    pub fn near(mut self) -> LineageQuestion {
        self.depth = Some(self.depth.unwrap_or(1));
        self
    }

    /// The whole graph.
    pub fn graph(&self, reading: &Reading<'_>) -> Answer<LineageView> {
        let _one_state = reading.store.reading()?;
        let roots = self.roots(reading)?;
        let lineage = self.lineage(reading, &roots)?;
        self.view(reading, &lineage)
    }

    /// The nodes around one node. `reach` is the token of that node.
    pub fn hop(
        &self,
        reading: &Reading<'_>,
        node: &str,
        reach: Option<i64>,
    ) -> Answer<LineageView> {
        let _one_state = reading.store.reading()?;
        let key = match node.chars().next() {
            Some('v') => LineageKey::Entity(ids::version(reading, node)?),
            Some('c') => LineageKey::Activity(ids::first_command(reading, node)?),
            _ => LineageKey::Activity(ids::process(reading, node)?),
        };
        if let (true, LineageKey::Entity(version)) = (self.of_commands, key) {
            let lineage = self.lineage(reading, &[version])?;
            return self.view(reading, &lineage);
        }
        let scope = self.scope(reading)?;
        let lineage = query::hop(reading.store, key, reach, self.direction, &scope)?;
        let near = LineageQuestion {
            of_commands: false,
            ..self.clone_bounds()
        };
        near.view(reading, &lineage)
    }

    /// The counted nodes of the graph, with the draft that has their members.
    pub fn folds(&self, reading: &Reading<'_>) -> Answer<(GraphDraft, Vec<Fold>)> {
        let _one_state = reading.store.reading()?;
        let roots = self.roots(reading)?;
        let lineage = self.lineage(reading, &roots)?;
        self.drafted(reading, &lineage)
            .map(|drafted| (drafted.draft, drafted.folds))
    }

    fn clone_bounds(&self) -> LineageQuestion {
        LineageQuestion {
            path: None,
            version: None,
            run: self.run.clone(),
            exclude: self.exclude.clone(),
            only: Vec::new(),
            through: Vec::new(),
            ..*self
        }
    }

    fn roots(&self, reading: &Reading<'_>) -> Answer<Vec<EntityKey>> {
        if let Some(version) = &self.version {
            return Ok(vec![ids::version(reading, version)?]);
        }
        let path = self.path.as_ref();
        let path = path.ok_or_else(|| Problem::bad_request("give a path or a version"))?;
        let path = Path::new(OsStr::from_bytes(path));
        let run = self
            .run
            .as_ref()
            .map(|run| run_id(reading, run))
            .transpose()?;
        let run = run.as_deref();
        Ok(match self.direction {
            Direction::Back => vec![subject::newest(reading.store, path, run)?],
            Direction::Forth => subject::all(reading.store, path, run)?,
        })
    }

    fn scope(&self, reading: &Reading<'_>) -> Answer<Scope> {
        let run = self
            .run
            .as_ref()
            .map(|run| run_id(reading, run))
            .transpose()?;
        Ok(Scope {
            possible: self.possible,
            lookups: self.lookups,
            // Between commands, the depth counts commands.
            depth: self.depth.filter(|_| !self.of_commands),
            most: Some(match self.of_commands {
                true => BEHIND,
                false => self.nodes,
            }),
            run,
            exclude: self.exclude.clone(),
            ..Scope::default()
        })
    }

    fn lineage(&self, reading: &Reading<'_>, roots: &[EntityKey]) -> Answer<Lineage> {
        let scope = self.scope(reading)?;
        let lineage = match self.direction {
            Direction::Back => query::ancestry_of(reading.store, roots, &scope)?,
            Direction::Forth => query::influence_of(reading.store, roots, &scope)?,
        };
        Ok(query::keep_copies_apart(
            reading.store,
            lineage,
            self.direction,
        )?)
    }

    fn drafted(&self, reading: &Reading<'_>, lineage: &Lineage) -> Answer<DraftedGraph> {
        reading.check()?;
        let projects = query::projects(reading.store, lineage)?;
        let globs = |patterns: &[String]| match patterns.is_empty() {
            true => Ok(None),
            false => Globs::new(patterns).map(Some),
        };
        let narrowing = Narrowing {
            depth: self.depth,
            only: globs(&self.only)?,
            through: globs(&self.through)?,
        };
        reading.with_owners(projects, |owners| {
            let (mut draft, is_cut) = match self.of_commands {
                true => {
                    let mut account = Account::new(
                        reading.store,
                        lineage,
                        self.direction,
                        self.possible,
                        owners,
                    )?;
                    account.narrow(&narrowing);
                    // The steps nearest to the subject stand first.
                    let cut = account.cut || account.chain.len() > self.nodes;
                    account.chain.truncate(self.nodes);
                    (command_graph::draft(&account, lineage), cut)
                }
                false => (process_graph::draft(lineage, owners), lineage.cut),
            };
            let unmarked = byte_marks::mark(&mut draft, reading)?;
            if self.noise {
                draft.noise.fill(false);
            }
            let folds = match self.noise {
                true => Vec::new(),
                false => draft.folds(owners),
            };
            Ok(DraftedGraph {
                draft,
                folds,
                is_cut,
                warnings: unmarked.into_iter().collect(),
            })
        })
    }

    fn view(&self, reading: &Reading<'_>, lineage: &Lineage) -> Answer<LineageView> {
        let DraftedGraph {
            draft,
            folds,
            is_cut,
            warnings,
        } = self.drafted(reading, lineage)?;
        let roots = draft
            .roots
            .iter()
            .map(|&at| draft.nodes[at].id().to_owned());
        let roots = roots.collect();
        let (nodes, links) = draft.shown(folds);
        Ok(LineageView {
            roots,
            level: if self.of_commands {
                "command"
            } else {
                "process"
            },
            direction: match self.direction {
                Direction::Back => "of",
                Direction::Forth => "uses",
            },
            cut: is_cut,
            nodes,
            links,
            runs: runs(reading, lineage)?,
            warnings,
        })
    }
}

fn runs(reading: &Reading<'_>, lineage: &Lineage) -> Answer<Vec<RunRow>> {
    let mut found = Vec::new();
    for run in lineage.runs() {
        found.push(RunRow::from(&query::facts(reading.store, run)?.summary));
    }
    found.sort_small_by(|a, b| a.started.total_cmp(&b.started));
    Ok(found)
}
