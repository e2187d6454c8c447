//! `GET /status`: which files are current, and the command that mends the others.

use backstory_ordering::SmallSort;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use backstory_currency::{self as currency, FileState, FileStatus, KeptResults, kept_results};
use backstory_workflow::shell::quote;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::reply;
use crate::site::Site;

/// The time that a judgement of all files may take: it may read every one.
const PATIENCE: Duration = Duration::from_secs(120);

/// The state of files.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct StatusList {
    /// The directory of the project. `null`: everywhere.
    pub scope: Option<PathText>,
    /// The files: those that are not current first.
    pub files: Vec<StatusRow>,
    /// Results of runs in other directories.
    pub outside: usize,
    /// Results of runs in the project that do not exist any more.
    pub removed: usize,
}

/// The state of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct StatusRow {
    /// Its path.
    pub path: PathText,
    /// The last run that wrote it.
    pub run: Option<String>,
    /// `current`, `outdated`, `modified`, `removed`, `unknown` or `uncertain`.
    pub state: &'static str,
    /// Why the steps behind it are stale.
    pub reasons: Vec<StaleReason>,
    /// The files behind it that have changed.
    pub changed_inputs: Vec<ChangedInput>,
    /// The command that brings it up to date. `null` if it is current, or no run wrote it.
    pub mend: Option<String>,
}

/// Why a step is stale.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct StaleReason {
    /// The path or variable.
    pub about: PathText,
    /// The reason in words.
    pub why: &'static str,
}

/// A file that has changed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ChangedInput {
    /// Its path.
    pub path: PathText,
    /// `modified`, `removed`, `appeared` …
    pub state: &'static str,
}

/// The state of files: of those with `path`, or of all results of runs in the project.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/status",
    params(("path" = Option<Vec<String>>, Query)),
    responses((status = 200, body = StatusList), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn status_list(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["path"])?;
    let paths: Vec<PathBuf> = params
        .all("path")
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    if paths.iter().any(|path| !path.is_absolute()) {
        return Err(Problem::bad_request("give absolute paths"));
    }
    let project = site.setup.project.clone();
    let list = site.readers.ask_within(PATIENCE, move |reading| {
        let named = !paths.is_empty();
        let kept = match named {
            true => KeptResults {
                inside: paths,
                ..KeptResults::default()
            },
            false => kept_results(reading.store, project.as_deref())?,
        };
        reading.check()?;
        let mut files = currency::status(reading.store, &kept.inside)?;
        files.retain(|file| named || file.is_result);
        files.sort_small_by_key(|file| (file.is_current(), file.path.clone()));
        Ok(StatusList {
            scope: project.map(|dir| dir.as_os_str().as_bytes().into()),
            files: files.iter().map(row).collect(),
            outside: kept.outside,
            removed: kept.removed,
        })
    });
    Ok(reply::json(&list.await?))
}

fn row(file: &FileStatus) -> StatusRow {
    let mends = matches!(
        file.state,
        FileState::Outdated | FileState::Modified | FileState::Removed | FileState::Uncertain
    );
    let reasons = file.reasons.iter().map(|reason| StaleReason {
        about: reason.subject().into(),
        why: reason.words(),
    });
    let changed = file
        .changed_inputs
        .iter()
        .map(|(path, state)| ChangedInput {
            path: path.into(),
            state: state.word(),
        });
    StatusRow {
        path: (&file.path).into(),
        run: file.run.clone(),
        state: file.state.word(),
        reasons: reasons.collect(),
        changed_inputs: changed.collect(),
        mend: (mends && file.run.is_some())
            .then(|| format!("backstory rerun {}", quote(&file.path))),
    }
}
