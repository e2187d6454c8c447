//! The application: routes, the gate before them, and what they share.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use backstory_query as query;
use backstory_query::answer::RunSummary;
use backstory_store::Home;
use serde::Serialize;

use crate::gate::Gate;
use crate::live_runs::LiveRuns;
use crate::problem::{Answer, Problem};
use crate::readers::{Reading, StoreReaders};
use crate::run_list::RunList;
use crate::setup::Setup;
use crate::{api, page, reply};

/// The application without a port.
#[derive(Clone)]
pub struct Site {
    shared: Arc<SharedState>,
}

/// What all requests share.
pub struct SharedState {
    /// How the server was set up.
    pub setup: Setup,
    /// The threads that ask the store.
    pub readers: StoreReaders,
    /// The list of all runs, as last read.
    pub runs: RunList,
    /// The runs in progress.
    pub live: LiveRuns,
    gate: Gate,
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
                gate: Gate::new(setup.token.clone(), port),
                setup,
            }),
        };
        Ok(site)
    }

    /// The routes.
    pub fn router(&self) -> Router {
        Router::new()
            .nest("/api/v1", api::router())
            .fallback(page_file)
            .layer(middleware::from_fn_with_state(self.clone(), admit))
            .with_state(self.clone())
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

async fn page_file(request: Request) -> Response {
    page::file(request.uri().path(), request.headers())
}

/// Lets a request pass, or answers it. Every answer gets the headers that protect the page.
async fn admit(State(site): State<Site>, request: Request, next: Next) -> Response {
    let admitted = site
        .gate
        .admit(request.method(), request.uri(), request.headers());
    let of_api = request.uri().path().starts_with("/api/");
    let mut response = match admitted {
        Ok(cookie) => {
            let mut response = next.run(request).await;
            if let Some(cookie) = cookie {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            response
        }
        Err(problem) if of_api => problem.into_response(),
        Err(problem) => page::refused(&problem),
    };
    page::protect(&mut response);
    response
}
