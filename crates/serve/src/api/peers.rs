//! `GET /runs/{run}/peers`: the addresses that a run's processes talked to, or tried to.

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_query as query;
use backstory_query::answer::NameSource;
use backstory_store::ActivityKey;
use backstory_workflow::shell;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::Answer;
use crate::site::Site;

/// The contacts of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct PeerList {
    /// In order of time.
    pub peers: Vec<PeerRow>,
}

/// A contact of a process with an address.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct PeerRow {
    /// `tcp:127.0.0.1:80`, `unix:/run/x`
    pub address: PathText,
    /// The process.
    pub process: String,
    /// Its arguments as a shell line.
    pub line: String,
    /// False if each attempt failed. `null` if that is not known.
    pub connected: Option<bool>,
    /// The number of the error of the last attempt that failed (errno).
    pub error: Option<i32>,
    /// The process accepted connections to the address.
    pub serves: bool,
    /// It sent data.
    pub sent: bool,
    /// It received data.
    pub received: bool,
    /// The first act.
    pub start: f64,
    /// The end of the last one.
    pub end: f64,
    /// Names that the address can have had.
    pub names: Vec<PeerNameRow>,
}

/// A name that an address can have had.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct PeerNameRow {
    /// The name.
    pub name: String,
    /// `lookup`, `hosts_file` or `arguments`: how the name is known.
    pub source: &'static str,
}

/// The addresses that a run's processes talked to, or tried to.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/runs/{run}/peers",
    params(("run" = String, Path)),
    responses((status = 200, body = PeerList), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn peer_list(
    State(site): State<Site>,
    Path(run): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&[])?;
    site.answer(move |_, reading| {
        let run = run_id(reading, &run)?;
        let contacts = query::peers(reading.store, &run)?;
        let peers = contacts.iter().map(|contact| PeerRow {
            address: (&contact.address).into(),
            process: ids::of_process(ActivityKey(contact.id)),
            line: shell::line(&contact.activity.argv),
            connected: contact.connected,
            error: contact.errno,
            serves: contact.serves,
            sent: contact.sent,
            received: contact.received,
            start: seconds(contact.interval.start),
            end: seconds(contact.interval.end),
            names: contact
                .names
                .iter()
                .map(|one| PeerNameRow {
                    name: one.name.clone(),
                    source: match one.source {
                        NameSource::Lookup => "lookup",
                        NameSource::HostsFile => "hosts_file",
                        NameSource::Arguments => "arguments",
                    },
                })
                .collect(),
        });
        Ok(PeerList {
            peers: peers.collect(),
        })
    })
    .await
}
