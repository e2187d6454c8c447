//! `GET /live` and `/live/events`: runs in progress.

use std::collections::HashSet;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use backstory_workflow::shell;

use super::run_row::seconds;
use crate::channel_body::channel;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::process_tree::descendants;
use crate::reply;
use crate::site::Site;

/// How often the logs are looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks between two signs of life.
const QUIET: u32 = 20;

/// The runs in progress.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct LiveList {
    /// The newest first.
    pub runs: Vec<LiveRun>,
}

/// A run in progress.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct LiveRun {
    /// Its id.
    pub run: String,
    /// Its name.
    pub name: Option<String>,
    /// The words of its command.
    pub command: Vec<PathText>,
    /// The command as a shell line.
    pub line: String,
    /// The directory that it was started in.
    pub cwd: PathText,
    /// When it began.
    pub started: f64,
    /// Bytes of its log.
    pub log_bytes: u64,
    /// Bytes that are added to the log in a second.
    pub bytes_per_second: f64,
    /// Operations in the log. The newest ones of each thread are not in it yet.
    pub records: u64,
    /// Operations that are added in a second.
    pub records_per_second: f64,
    /// Its running processes.
    pub running: Vec<LiveProcess>,
}

/// A running process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct LiveProcess {
    /// Its process id.
    pub pid: u32,
    /// Its arguments as a shell line.
    pub line: String,
    /// The kernel's letter for its state: `R` runs, `S` waits, `D` waits for a disk …
    pub state: String,
    /// The reason why it waits. `null` if it runs.
    pub waits_for: Option<String>,
}

/// A run that was added to the store.
#[derive(Debug, Serialize)]
struct StoredRun<'r> {
    run: &'r str,
}

/// The runs in progress.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/live",
    responses((status = 200, body = LiveList), (status = "5XX", body = crate::problem::ProblemBody))
))]
pub async fn live_list(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&[])?;
    Ok(reply::json(&look(&site).await?))
}

/// The same as server-sent events: `runs` with a list whenever it has changed, and `stored` with
/// the id of a run that was added to the store.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/live/events",
    responses((status = 200, body = String, content_type = "text/event-stream"))
))]
pub async fn live_events(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&[])?;
    let (sender, body) = channel();
    tokio::spawn(async move {
        let mut last: Option<LiveList> = None;
        let mut known: Option<HashSet<String>> = None;
        let mut quiet = 0;
        loop {
            let mut text = String::new();
            if let Ok(now) = look(&site).await
                && last.as_ref() != Some(&now)
            {
                text.push_str(&event("runs", &now));
                last = Some(now);
            }
            if let Ok(stored) = stored(&site).await {
                let before = known.as_ref();
                let new = |run: &&String| before.is_some_and(|before| !before.contains(*run));
                for run in stored.iter().filter(new) {
                    text.push_str(&event("stored", &StoredRun { run }));
                }
                known = Some(stored);
            }
            quiet += 1;
            if text.is_empty() && quiet >= QUIET {
                // A proxy or a browser may end a silent connection.
                text.push_str(": still here\n\n");
            }
            if !text.is_empty() {
                quiet = 0;
                if sender.send(Bytes::from(text)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    });
    Ok(reply::of_body(body, "text/event-stream"))
}

/// One event. JSON in one line has no newline.
fn event(name: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

/// The ids of all runs of the store.
async fn stored(site: &Site) -> Answer<HashSet<String>> {
    let shared = site.clone();
    let ask = site.readers.ask(move |reading| {
        let runs = shared.runs.read(reading)?;
        Ok(runs.iter().map(|run| run.id.clone()).collect())
    });
    ask.await
}

/// The runs in progress, as they are now.
async fn look(site: &Site) -> Answer<LiveList> {
    let site = site.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let runs = site.follow_running().into_iter();
        let runs = runs.map(|(header, counts)| LiveRun {
            run: header.id,
            name: header.name,
            line: shell::line(words(&header.command)),
            command: PathText::list(&words(&header.command)),
            cwd: header.cwd.as_slice().into(),
            started: seconds(header.started),
            log_bytes: counts.bytes,
            bytes_per_second: counts.bytes_per_second.round(),
            records: counts.records,
            records_per_second: counts.records_per_second.round(),
            running: descendants(header.launcher_pid)
                .into_iter()
                .map(|process| LiveProcess {
                    pid: process.pid,
                    line: shell::line(&process.argv),
                    state: process.state.to_string(),
                    waits_for: process.waits_for,
                })
                .collect(),
        });
        LiveList {
            runs: runs.collect(),
        }
    });
    looked
        .await
        .map_err(|error| Problem::failed(format!("cannot look at the runs in progress: {error}")))
}

fn words(command: &[Vec<u8>]) -> Vec<backstory_eventlog::event::Bytes> {
    command.iter().map(|word| word.as_slice().into()).collect()
}
