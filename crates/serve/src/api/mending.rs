//! `POST /rerun`: brings a file up to date, if the user allowed it on the command line. This
//! program starts itself with the command that the user would type.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc::Sender;
#[cfg(test)]
use utoipa::ToSchema;

use super::file_view::absolute;
use crate::channel_body::channel;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::reply::{self, NDJSON};
use crate::site::Site;

/// A line of the output of `backstory rerun`, or its end.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RerunLine {
    /// `out` or `err`. `null` at the end.
    pub stream: Option<&'static str>,
    /// The line.
    pub text: Option<PathText>,
    /// The exit status, at the end. 128 and the signal's number, if a signal ended it.
    pub exit: Option<i32>,
}

/// Runs `backstory rerun` for a file. The answer has one JSON object a line. `yes=true` agrees to
/// steps that do more than make files of the project.
///
/// The command goes on if the client leaves.
#[cfg_attr(test, utoipa::path(
    post,
    path = "/rerun",
    params(
        ("path" = String, Query), ("yes" = Option<bool>, Query),
        ("X-Backstory" = String, Header, description = "any value"),
    ),
    responses(
        (status = 200, body = RerunLine, content_type = "application/x-ndjson"),
        (status = 403, body = crate::problem::ProblemBody)
    )
))]
pub async fn mend(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&["path", "yes"])?;
    if !site.setup.allow_rerun {
        return Err(Problem::forbidden(
            "this server only shows; start it with `backstory serve --allow-rerun`",
        ));
    }
    let path = absolute(&params)?;
    let mut command = Command::new(&site.setup.hooks.program);
    command.arg("rerun").arg("--store").arg(site.home().dir());
    match &site.setup.project {
        Some(project) => command.arg("--root").arg(project).current_dir(project),
        None => command.arg("--outside"),
    };
    if params.flag("yes")? == Some(true) {
        command.arg("--yes");
    }
    command.arg("--").arg(OsStr::from_bytes(&path));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child
        .map_err(|error| Problem::failed(format!("cannot start `backstory rerun`: {error}")))?;
    let (sender, body) = channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    tokio::task::spawn_blocking(move || {
        std::thread::scope(|scope| {
            scope.spawn(|| pass_on(out, "out", &sender));
            scope.spawn(|| pass_on(err, "err", &sender));
        });
        let status = child.wait().ok();
        let exit = status.and_then(|status| {
            let signal = status.signal().map(|signal| 128 + signal);
            status.code().or(signal)
        });
        send(
            &sender,
            &RerunLine {
                exit: Some(exit.unwrap_or(1)),
                ..RerunLine::default()
            },
        );
    });
    Ok(reply::of_body(body, NDJSON))
}

/// Passes lines on. Without a client they are read all the same, so that the command can go on.
fn pass_on(from: Option<impl Read>, stream: &'static str, sender: &Sender<Bytes>) {
    let Some(from) = from else {
        return;
    };
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        send(
            sender,
            &RerunLine {
                stream: Some(stream),
                text: Some(line.as_slice().into()),
                exit: None,
            },
        );
    }
}

fn send(sender: &Sender<Bytes>, line: &RerunLine) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        // The client may have left.
        drop(sender.blocking_send(Bytes::from(text)));
    }
}
