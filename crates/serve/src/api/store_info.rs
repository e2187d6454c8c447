//! `GET /store`: the store as a whole, and what this server may do.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::setup::Start;
use crate::site::Site;

/// The store as a whole, and what this server may do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct StoreInfo {
    /// The directory of the store.
    pub directory: PathText,
    /// The version of backstory.
    pub version: &'static str,
    /// Runs in the store.
    pub runs: u64,
    /// Runs in progress, which the store does not have yet.
    pub running: usize,
    /// Processes of all runs.
    pub processes: u64,
    /// Edges of all runs.
    pub edges: u64,
    /// Bytes of the database.
    pub bytes: u64,
    /// The machines that recorded.
    pub hosts: Vec<String>,
    /// The directory of the project, in which the status of files is judged. `null`: everywhere.
    pub scope: Option<PathText>,
    /// The subject that the page opens with. `null`: the list of runs.
    pub start: Option<StartSubject>,
    /// True if `POST /rerun` is allowed.
    pub allow_rerun: bool,
}

/// The subject that the page opens with: a run or a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct StartSubject {
    /// The id of a run.
    pub run: Option<String>,
    /// The path of a file.
    pub path: Option<PathText>,
}

/// The store as a whole, and what this server may do.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/store",
    responses((status = 200, body = StoreInfo), (status = "5XX", body = crate::problem::ProblemBody))
))]
pub async fn store_info(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&[])?;
    site.answer(|site, reading| {
        let stats = reading.store.stats()?;
        let runs = site.runs.read(reading)?;
        let hosts: BTreeSet<&String> = runs.iter().map(|run| &run.host).into_tree();
        // A run may have ended between the two lists.
        let mut running = site.running();
        running.retain(|run| runs.iter().all(|stored| stored.id != run.id));
        let setup = &site.setup;
        let project = setup.project.as_ref();
        Ok(StoreInfo {
            directory: site.home().dir().as_os_str().as_bytes().into(),
            version: env!("CARGO_PKG_VERSION"),
            runs: stats.runs,
            running: running.len(),
            processes: stats.counts.activities,
            edges: stats.counts.edges,
            bytes: stats.bytes,
            hosts: hosts.into_iter().cloned().collect(),
            scope: project.map(|dir| dir.as_os_str().as_bytes().into()),
            start: match &setup.start {
                Start::Home => None,
                Start::Run(run) => Some(StartSubject {
                    run: Some(run.clone()),
                    path: None,
                }),
                Start::File(path) => Some(StartSubject {
                    run: None,
                    path: Some(path.as_slice().into()),
                }),
            },
            allow_rerun: setup.allow_rerun,
        })
    })
    .await
}
