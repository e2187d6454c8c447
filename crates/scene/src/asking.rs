//! Answers a question: finds the runs, and in each the requests and processes that are meant.
//!
//! In: a store and its directory. Out: a scene with the newest incidents. Reads the deep log of a
//! run where it has one, and otherwise its graph.

use backstory_deep::{DeepLog, ReadMeter, Request};
use backstory_eventlog::event::Time;
use backstory_ordering::SmallSort;
use backstory_query as query;
use backstory_query::answer::FileTouch;
use backstory_query::{TouchSearch, Touches};
use backstory_store::{Home, RunRecord, Store};

use crate::deep_incidents::incidents;
use crate::deep_run::{DeepRun, Meant};
use crate::deep_search::{acts_on, at_moment, with_peer};
use crate::error::{Error, Result};
use crate::meaning::{acts, is_change, meant_by, names, served, served_during};
use crate::model::{Incident, Scene, SceneRun};
use crate::question::{PeerPattern, Question};
use crate::recorded_incidents as recorded;

/// Most runs that are searched for an address.
const MOST_RUNS: usize = 200;

/// A run counts as running at a moment if it ended at most this long before, in ns.
const NEAR: Time = 1_000_000_000;

/// The limits of an answer.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Only this run, by its id.
    pub run: Option<String>,
    /// Most incidents.
    pub most: usize,
    /// Counts what is read of deep logs.
    pub meter: ReadMeter,
}

/// Answers a question.
///
/// # Errors
/// No run knows what the question is about, or the store cannot be read. A deep log that cannot be
/// read is a note: the answer then comes from the graph.
pub fn scene(store: &dyn Store, home: &Home, question: Question, asked: &Asked) -> Result<Scene> {
    let mut telling = Telling {
        store,
        home,
        asked,
        incidents: Vec::new(),
        left_out: 0,
        notes: Vec::new(),
    };
    match &question {
        Question::File { path, reads } => {
            telling.of_file(path, *reads)?;
            if telling.incidents.is_empty() && !reads {
                telling.of_file(path, true)?;
                telling
                    .notes
                    .push("No recorded process changed the file. These used it.".into());
            }
        }
        Question::Address(peer) => telling.of_address(peer)?,
        Question::Moment(moment) => telling.of_moment(*moment)?,
    }
    if telling.incidents.is_empty() {
        let mut text = nothing(&question);
        for note in &telling.notes {
            text.push_str("; ");
            text.push_str(note.trim_end_matches('.'));
        }
        return Err(Error::NotFound(text));
    }
    Ok(Scene {
        question,
        incidents: telling.incidents,
        left_out: telling.left_out,
        notes: telling.notes,
    })
}

fn nothing(question: &Question) -> String {
    match question {
        Question::File { path, .. } => format!("no recorded process used {}", path.display()),
        Question::Address(peer) => format!(
            "no recorded process had a connection with {}; `backstory peers` lists those of a run",
            peer.text()
        ),
        Question::Moment(_) => "no recorded process had a connection at that moment; `backstory \
                                log` lists the runs"
            .to_owned(),
    }
}

/// The state of an answer.
struct Telling<'s> {
    store: &'s dyn Store,
    home: &'s Home,
    asked: &'s Asked,
    incidents: Vec<Incident>,
    left_out: usize,
    notes: Vec<String>,
}

impl<'s> Telling<'s> {
    fn room(&self) -> usize {
        self.asked.most.saturating_sub(self.incidents.len())
    }

    fn scene_run(&self, record: &RunRecord) -> SceneRun {
        let header = &record.header;
        SceneRun {
            id: header.id.clone(),
            command: header.command.iter().map(|word| word.to_vec()).collect(),
            started: header.started,
            is_deep: self.home.deep_log_path(&header.id).exists(),
        }
    }

    /// Adds a note, once.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The run with its deep log. `None` if it has none that can be read.
    fn deep_run(&mut self, record: &RunRecord) -> Result<Option<DeepRun<'s>>> {
        let run = self.scene_run(record);
        if !run.is_deep {
            return Ok(None);
        }
        let log = match DeepLog::open(self.home.deep_log_path(&run.id)) {
            Ok(log) => log.metered(&self.asked.meter),
            Err(error) => {
                self.notes.push(format!(
                    "The deep log of run {} is not used: {error}.",
                    run.id
                ));
                return Ok(None);
            }
        };
        if let Some(damage) = log.damage().words() {
            self.note(format!("Run {}: {damage}.", run.id));
        }
        Ok(Some(DeepRun {
            store: self.store,
            processes: query::processes(self.store, &run.id)?,
            directory: record.header.cwd.to_vec(),
            requests: Vec::new(),
            log,
            run,
        }))
    }

    fn add(&mut self, found: Vec<Incident>) {
        let room = self.room();
        self.left_out += found.len().saturating_sub(room);
        self.incidents.extend(found.into_iter().take(room));
    }

    fn of_file(&mut self, path: &std::path::Path, reads: bool) -> Result<()> {
        let wanted = Touches {
            lookups: false,
            run: self.asked.run.clone(),
        };
        let mut search = TouchSearch::new(self.store, path, &wanted)?;
        while let Some(mut touches) = search.next_run()? {
            touches.retain(|touch| reads || is_change(touch));
            let Some(record) = touches.first().map(|touch| self.store.run(&touch.run)) else {
                continue;
            };
            if self.room() == 0 {
                self.left_out += touches.len();
                continue;
            }
            if let Some(record) = record? {
                self.of_file_in_run(&record, touches, reads)?;
            }
        }
        Ok(())
    }

    fn of_file_in_run(
        &mut self,
        record: &RunRecord,
        touches: Vec<FileTouch>,
        reads: bool,
    ) -> Result<()> {
        let mut left = touches;
        if let Some(mut run) = self.deep_run(record)? {
            let names = names(&left);
            let (found, requests) = acts_on(&run.log, &names, !reads);
            run.requests = requests;
            left.retain(|touch| !found.iter().any(|act| act.pid == touch.activity.pid));
            let found = found.into_iter();
            let mut meant: Vec<Meant> = found.map(|act| meant_by(&run, act)).collect();
            left.retain(|touch| match served_during(&run, touch) {
                Some(one) => {
                    meant.push(one);
                    false
                }
                None => true,
            });
            meant.sort_small_by_key(|one| std::cmp::Reverse(one.time));
            let room = self.room();
            self.left_out += meant.len().saturating_sub(room);
            meant.truncate(room);
            let found = incidents(&run, meant)?;
            self.add(found);
        }
        let run = self.scene_run(record);
        for touch in left {
            if self.room() == 0 {
                self.left_out += 1;
                continue;
            }
            let (time, acts) = (touch.interval.end, acts(&touch));
            let directory = &record.header.cwd;
            let found = recorded::incident(self.store, &run, directory, touch.id, time, acts)?;
            self.incidents.extend(found);
        }
        Ok(())
    }

    /// The runs that are searched, the newest first.
    fn runs(&mut self) -> Result<Vec<RunRecord>> {
        let mut runs = self.store.runs()?;
        if let Some(wanted) = &self.asked.run {
            runs.retain(|run| run.header.id == *wanted);
        }
        Ok(runs)
    }

    fn of_address(&mut self, peer: &PeerPattern) -> Result<()> {
        let runs = self.runs()?;
        if runs.len() > MOST_RUNS {
            self.notes.push(format!(
                "The newest {MOST_RUNS} runs were searched. `--run RUN` searches an older one."
            ));
        }
        for record in runs.iter().take(MOST_RUNS) {
            if let Some(mut run) = self.deep_run(record)? {
                run.requests = run.log.requests();
                let found = with_peer(&run.requests, peer);
                self.add_served(&run, found)?;
                continue;
            }
            let contacts = query::peers(self.store, &record.header.id)?;
            let is_it = |address: &[u8]| {
                std::str::from_utf8(address).is_ok_and(|address| peer.accepts(address))
            };
            let found = contacts
                .iter()
                .rev()
                .filter(|contact| is_it(&contact.address));
            for contact in found {
                self.add_recorded(record, contact.id, contact.interval.end)?;
            }
        }
        Ok(())
    }

    fn of_moment(&mut self, moment: Time) -> Result<()> {
        let mut runs = self.runs()?;
        runs.retain(|run| run.header.started <= moment + NEAR && run.end.ended >= moment - NEAR);
        for record in &runs {
            if let Some(mut run) = self.deep_run(record)? {
                run.requests = run.log.requests();
                let found = at_moment(&run.log, &run.requests, moment);
                self.add_served(&run, found)?;
                continue;
            }
            for contact in query::peers(self.store, &record.header.id)? {
                let (from, to) = (contact.interval.start, contact.interval.end);
                if from <= moment + NEAR && to >= moment - NEAR {
                    self.add_recorded(record, contact.id, moment)?;
                }
            }
        }
        Ok(())
    }

    fn add_served(&mut self, run: &DeepRun<'_>, found: Vec<&Request>) -> Result<()> {
        let meant = found.into_iter().map(|request| served(run, request));
        self.add_meant(run, meant.collect())
    }

    fn add_meant(&mut self, run: &DeepRun<'_>, mut meant: Vec<Meant>) -> Result<()> {
        let room = self.room();
        self.left_out += meant.len().saturating_sub(room);
        meant.truncate(room);
        let found = incidents(run, meant)?;
        self.add(found);
        Ok(())
    }

    fn add_recorded(&mut self, record: &RunRecord, process: u64, time: Time) -> Result<()> {
        if self.room() == 0 {
            self.left_out += 1;
            return Ok(());
        }
        let run = self.scene_run(record);
        let directory = &record.header.cwd;
        let found = recorded::incident(self.store, &run, directory, process, time, Vec::new())?;
        self.incidents.extend(found);
        Ok(())
    }
}
