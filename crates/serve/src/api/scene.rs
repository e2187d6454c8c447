//! `GET /scene`: the requests behind a file, an address or a moment, with their bytes and files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use axum::extract::State;
use axum::response::Response;
use backstory_scene::{
    self as scene, Asked, Excerpt, Incident, PeerPattern, Question, Scene, SceneConnection,
    SceneFile, SceneProcess, SceneRequest,
};
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::run_row::seconds;
use super::run_view::run_id;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::site::Site;

/// The requests of an answer, unless the client wants another number.
const USUAL: usize = 10;
/// The most requests of an answer.
const MOST: usize = 100;
/// The most files, programs and connections of a request.
const LISTED: usize = 1000;

/// The requests behind a file, an address or a moment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SceneView {
    /// The newest first.
    pub incidents: Vec<IncidentView>,
    /// Older ones that are left out.
    pub left_out: usize,
    /// Sentences about what was not searched.
    pub notes: Vec<String>,
}

/// One request, or one process, and what it did.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct IncidentView {
    /// The run.
    pub run: String,
    /// The run has a deep log.
    pub deep: bool,
    /// The moment of the act.
    pub time: f64,
    /// The acts on the file of the question: `write`, `rename`, `delete`, `meta`, `exec` or `read`.
    pub acts: Vec<&'static str>,
    /// `request`, `time` or `process`: how the act and the request are connected.
    pub found_by: &'static str,
    /// The process that acted.
    pub process: SceneProcessRow,
    /// The request, if it is known.
    pub request: Option<RequestView>,
    /// The files that were used, the user's own ones first.
    pub files: Vec<SceneFileRow>,
    /// Programs that were started.
    pub started: Vec<SceneProcessRow>,
    /// Other connections.
    pub connections: Vec<SceneConnectionRow>,
    /// The command that runs it again.
    pub reconstruct: String,
    /// Sentences about what is not known.
    pub limits: Vec<String>,
}

/// A program in a process.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SceneProcessRow {
    /// The process id.
    pub pid: u32,
    /// Its arguments as a shell line, or its path.
    pub line: PathText,
}

/// A request.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RequestView {
    /// Its number in the run.
    pub number: usize,
    /// The process accepted the connection.
    pub served: bool,
    /// The other end. Empty if it is not known.
    pub peer: String,
    /// The process that began with it.
    pub pid: u32,
    /// Its first call.
    pub start: f64,
    /// Its last call.
    pub end: f64,
    /// The bytes that were received.
    pub received: ExcerptView,
    /// The bytes that were sent.
    pub sent: ExcerptView,
}

/// The beginning of what went in one direction.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ExcerptView {
    /// All bytes.
    pub bytes: u64,
    /// The first of them, line by line, with control characters escaped and secrets replaced.
    pub lines: Vec<String>,
    /// There is more.
    pub cut: bool,
}

/// A file that was used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SceneFileRow {
    /// Its path.
    pub path: PathText,
    /// The acts on it: words as in `acts` of the incident.
    pub acts: Vec<&'static str>,
    /// It is the user's own, or a changed file of the system.
    pub own: bool,
    /// The digest (BLAKE3) that the run left at the path.
    pub digest: Option<String>,
    /// `unchanged`, `changed`, `there` or `gone`: a changed file as it is now.
    pub now: Option<&'static str>,
}

/// Another connection.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SceneConnectionRow {
    /// The address.
    pub address: String,
    /// The process.
    pub pid: u32,
    /// The process accepted connections to the address.
    pub serves: bool,
    /// False if each attempt failed.
    pub connected: Option<bool>,
}

/// The requests behind a file, an address or a moment.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/scene",
    params(
        ("path" = Option<String>, Query, description = "A file."),
        ("reads" = Option<bool>, Query, description = "Also requests that only read the file."),
        ("address" = Option<String>, Query, description = "A peer: `HOST`, `HOST:PORT`, `unix:PATH`."),
        ("time" = Option<f64>, Query, description = "A moment."),
        ("run" = Option<String>, Query, description = "In this run only."),
        ("most" = Option<usize>, Query, description = "Most requests, 10 if absent.")
    ),
    responses(
        (status = 200, body = SceneView),
        (status = 400, body = crate::problem::ProblemBody),
        (status = 404, body = crate::problem::ProblemBody)
    )
))]
pub async fn scene_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["path", "reads", "address", "time", "run", "most"])?;
    let question = question(&params)?;
    let most = params.number("most", USUAL, MOST)?;
    let run = params.text("run")?.map(str::to_owned);
    site.answer(move |_, reading| {
        let run = run.map(|run| run_id(reading, &run)).transpose()?;
        let asked = Asked {
            run,
            most,
            meter: Default::default(),
        };
        let found = scene::scene(reading.store, reading.home, question, &asked)?;
        Ok(view(&found))
    })
    .await
}

fn question(params: &Params) -> Answer<Question> {
    if let Some(path) = params.bytes("path") {
        return Ok(Question::File {
            path: OsStr::from_bytes(path).into(),
            reads: params.flag("reads")?.unwrap_or(false),
        });
    }
    if let Some(address) = params.text("address")? {
        let peer = PeerPattern::parse(address);
        let wrong = || Problem::bad_request(format!("'{address}' is no address"));
        return peer.map(Question::Address).ok_or_else(wrong);
    }
    match params.time("time")? {
        Some(moment) => Ok(Question::Moment(moment)),
        None => Err(Problem::bad_request(
            "one of 'path', 'address' and 'time' is needed",
        )),
    }
}

fn view(scene: &Scene) -> SceneView {
    SceneView {
        incidents: scene.incidents.iter().map(incident).collect(),
        left_out: scene.left_out,
        notes: scene.notes.clone(),
    }
}

fn incident(incident: &Incident) -> IncidentView {
    IncidentView {
        run: incident.run.id.clone(),
        deep: incident.run.is_deep,
        time: seconds(incident.time),
        acts: incident.acts.iter().map(|act| act.word()).collect(),
        found_by: incident.precision.word(),
        process: process(&incident.process),
        request: incident.request.as_ref().map(request),
        files: incident.files.iter().take(LISTED).map(file).collect(),
        started: incident.started.iter().take(LISTED).map(process).collect(),
        connections: incident
            .connections
            .iter()
            .take(LISTED)
            .map(connection)
            .collect(),
        reconstruct: incident.reconstruct.clone(),
        limits: incident.limits.clone(),
    }
}

fn process(process: &SceneProcess) -> SceneProcessRow {
    SceneProcessRow {
        pid: process.pid,
        line: scene::process_line(process).into(),
    }
}

fn request(request: &SceneRequest) -> RequestView {
    RequestView {
        number: request.number,
        served: request.is_served,
        peer: request.peer.clone(),
        pid: request.pid,
        start: seconds(request.began),
        end: seconds(request.ended),
        received: excerpt(&request.received),
        sent: excerpt(&request.sent),
    }
}

fn excerpt(excerpt: &Excerpt) -> ExcerptView {
    ExcerptView {
        bytes: excerpt.length,
        lines: excerpt.lines(),
        cut: excerpt.is_cut,
    }
}

fn file(file: &SceneFile) -> SceneFileRow {
    SceneFileRow {
        path: file.path.as_slice().into(),
        acts: file.acts.iter().map(|act| act.word()).collect(),
        own: file.is_own,
        digest: file.digest.map(|digest| digest.to_string()),
        now: file.state.map(|state| state.word()),
    }
}

fn connection(connection: &SceneConnection) -> SceneConnectionRow {
    SceneConnectionRow {
        address: connection.address.clone(),
        pid: connection.pid,
        serves: connection.serves,
        connected: connection.connected,
    }
}
