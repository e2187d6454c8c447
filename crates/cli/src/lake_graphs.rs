//! The graphs of a lake's runs, one after the other. The package `backstory-lake` reads them.
//!
//! In: the least that a wanted run has. Out: each such run as a [`RunGraph`]. So the matcher of
//! stored runs looks at runs of a lake, too. One graph is in memory at a time.
//!
//! `lake/backstory_lake/run_graphs.py` defines the lines that this module reads.

mod rows;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use backstory_eventlog::event::Time;
use backstory_hunt::{RunFilter, RunGraph};

use crate::args::query::SqlBounds;
use crate::commands::lake;
use crate::error::{Failure, Status, complain};
use crate::json::Value;
use crate::text::progress::{Progress, Unit};
use rows::{GraphRows, Row};

/// Which runs of a lake are wanted.
#[derive(Debug)]
pub struct LakeRequest<'a> {
    /// A directory, or `catalog:NAME`.
    pub lake: &'a OsStr,
    /// Ids or names. None: all runs.
    pub runs: &'a [String],
    /// Names of hosts. None: all.
    pub hosts: &'a [String],
    /// The least and the greatest begin of a run.
    pub begun: (Option<Time>, Option<Time>),
    /// The least that a wanted run has.
    pub filter: &'a RunFilter,
    /// Whether it matters which versions no recorded run explains.
    pub compares: bool,
    /// Runs with more edges are named only.
    pub most: usize,
    /// The bounds of the package's SQL.
    pub bounds: SqlBounds,
}

/// A run of a lake.
#[derive(Debug)]
pub struct LakeRun {
    /// Its id.
    pub id: String,
    /// The machine that recorded it.
    pub place: LakePlace,
    /// Its graph. `None`: it has too many edges.
    pub graph: Option<RunGraph>,
}

/// Where a run of a lake was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakePlace {
    /// The name of the host.
    pub host: String,
    /// The lake's name of the machine.
    pub machine: String,
    /// Another machine of the lake has this host's name.
    pub is_shared: bool,
}

impl LakePlace {
    /// The host, and the machine if the host's name does not tell it.
    pub fn text(&self) -> String {
        match self.is_shared {
            true => format!("{} (machine {})", self.host, self.machine),
            false => self.host.clone(),
        }
    }
}

impl LakeRequest<'_> {
    fn json(&self) -> Value {
        let time = |time: Option<Time>| time.map_or(Value::Null, |ns| Value::Int(ns.into()));
        Value::Object(vec![
            ("runs", Value::array(self.runs)),
            ("hosts", Value::array(self.hosts)),
            ("since", time(self.begun.0)),
            ("until", time(self.begun.1)),
            ("files", Value::array(&self.filter.files)),
            ("processes", Value::array(&self.filter.processes)),
            ("edges", Value::array(&self.filter.edges)),
            ("condition", self.filter.condition.as_str().into()),
            ("compares", self.compares.into()),
            ("most", Value::Int(self.most as i128)),
        ])
    }

    /// Calls `look` with each run that can have what is wanted, the newest first. Returns the
    /// number of runs from which they were chosen.
    ///
    /// # Errors
    ///
    /// The lake cannot be read, or `look` fails.
    pub fn each(
        &self,
        look: &mut dyn FnMut(LakeRun) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        let mut child = self.ask()?;
        let read = match child.stdout.take() {
            Some(out) => self.read(BufReader::with_capacity(1 << 20, out), look),
            None => Ok(None),
        };
        if read.is_err() {
            // The rest is not wanted.
            let _ = child.kill();
        }
        let ended = child.wait();
        if let Some(selected) = read? {
            return Ok(selected);
        }
        match ended.ok().and_then(|status| status.code()) {
            // It has said why.
            Some(code) if code != 0 => Err(Failure {
                status: if code == 2 {
                    Status::Misuse
                } else {
                    Status::NotFound
                },
                line: String::new(),
            }),
            _ => Err(Failure::not_found(
                "backstory-lake ended before its answer did",
            )),
        }
    }

    fn ask(&self) -> Result<Child, Failure> {
        let mut command = lake::program();
        command.args(["graphs", "--lake"]).arg(self.lake);
        command.args(lake::bound_options(self.bounds));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| lake::not_started(&error))?;
        let mut text = Vec::new();
        self.json().write(&mut text)?;
        if let Some(mut input) = child.stdin.take() {
            // If it has ended, its exit status says so.
            let _ = input.write_all(&text);
        }
        Ok(child)
    }

    /// Reads all runs. `None`: the answer has no end.
    fn read(
        &self,
        mut lines: BufReader<ChildStdout>,
        look: &mut dyn FnMut(LakeRun) -> Result<(), Failure>,
    ) -> Result<Option<usize>, Failure> {
        let damaged = || Failure::not_found("backstory-lake gave a line that is none of a graph");
        let mut progress = Some(Progress::start("looking for runs in the lake"));
        let mut selected = 0;
        let mut run: Option<(LakeRun, usize)> = None;
        let mut graph = GraphRows::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 || line.pop() != Some(b'\n') {
                return Ok(None);
            }
            match Row::parse(&line).ok_or_else(damaged)? {
                Row::Counts { all, chosen, older } => {
                    selected = all;
                    // The bar of the search disappears first.
                    drop(progress.take());
                    progress = Some(Progress::of("runs", chosen as u64, Unit::Things));
                    tell_older(older);
                }
                Row::Run { id, place, edges } => {
                    let graph = None;
                    run = Some((LakeRun { id, place, graph }, edges));
                }
                Row::EndOfRun => {
                    let (mut run, edges) = run.take().ok_or_else(damaged)?;
                    let rows = std::mem::take(&mut graph);
                    run.graph = (edges <= self.most).then(|| rows.graph(self.compares));
                    look(run)?;
                    if let Some(progress) = &progress {
                        progress.done.add(1);
                    }
                }
                Row::End => return Ok(Some(selected)),
                Row::Part(part) => graph.add(part),
            }
        }
    }
}

/// Says that some runs lack a field.
fn tell_older(runs: usize) {
    if runs > 0 {
        let runs = crate::text::words::counted(runs, "run was", "runs were");
        complain(&format!(
            "{runs} shipped by an older backstory-lake, without further names of files: rules do not see these names"
        ));
    }
}
