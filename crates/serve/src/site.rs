//! The state that all requests share: the set-up, the threads that ask the store, and what is
//! remembered.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use backstory_eventlog::run::RunHeader;
use backstory_query as query;
use backstory_query::answer::RunSummary;
use backstory_store::Home;
use serde::Serialize;

use crate::gate::Gate;
use crate::live_runs::LiveRuns;
use crate::live_tail::{LiveTails, TailCounts};
use crate::problem::{Answer, Problem};
use crate::readers::{Reading, StoreReaders};
use crate::reply;
use crate::run_list::RunList;
use crate::setup::Setup;

/// The state that all requests share.
#[derive(Clone)]
pub struct Site {
    shared: Arc<SharedState>,
}

/// The parts of a [`Site`].
pub struct SharedState {
    /// How the server was set up.
    pub setup: Setup,
    /// The threads that ask the store.
    pub readers: StoreReaders,
    /// The list of all runs, as last read.
    pub runs: RunList,
    /// The runs in progress.
    pub live: LiveRuns,
    tails: Mutex<LiveTails>,
    /// It admits requests.
    pub gate: Gate,
}

impl std::ops::Deref for Site {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.shared
    }
}

impl Site {
    /// The application for a server at this port. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(setup: Setup, port: u16) -> io::Result<Site> {
        let site = Site {
            shared: Arc::new(SharedState {
                readers: StoreReaders::start(&setup.home)?,
                runs: RunList::default(),
                live: LiveRuns::default(),
                tails: Mutex::default(),
                gate: Gate::new(setup.token.clone(), port),
                setup,
            }),
        };
        Ok(site)
    }

    /// The store's directory.
    pub fn home(&self) -> &Home {
        &self.setup.home
    }

    /// The runs in progress, the newest first.
    pub fn running(&self) -> Vec<RunSummary> {
        let is_recording = self.setup.hooks.is_recording;
        let live = self.live.read(self.home(), is_recording);
        live.iter()
            .map(|(_, header)| query::running(header))
            .collect()
    }

    /// The runs in progress, with what their logs have by now. Reads from disk.
    pub fn follow_running(&self) -> Vec<(RunHeader, TailCounts)> {
        let live = self.live.read(self.home(), self.setup.hooks.is_recording);
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        tails.keep(|run| live.iter().any(|(_, header)| header.id == run));
        let follow = |(part, header): (PathBuf, RunHeader)| {
            let counts = tails.follow(&header.id, &part)?;
            Some((header, counts))
        };
        live.into_iter().filter_map(follow).collect()
    }

    /// Asks the store, and writes the answer as JSON on the same thread.
    pub async fn answer<T: Serialize>(
        &self,
        question: impl FnOnce(&Site, &Reading<'_>) -> Answer<T> + Send + 'static,
    ) -> Answer<Response> {
        let site = self.clone();
        let written = self.readers.ask(move |reading| {
            let value = question(&site, reading)?;
            serde_json::to_vec(&value)
                .map_err(|error| Problem::failed(format!("cannot write the answer: {error}")))
        });
        Ok(reply::of_bytes(written.await?, "application/json"))
    }
}
