//! Why a request has no answer: a status, a word for programs and a sentence for people.

use std::error::Error as _;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use backstory_query as query;
use backstory_store as store;
use backstory_vocabulary::error_chain;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

/// The body of every answer that is no success.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ProblemBody {
    /// The failure.
    pub error: Problem,
}

/// The failure.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct Problem {
    /// The HTTP status.
    #[serde(skip)]
    #[cfg_attr(test, schema(ignore))]
    pub status: u16,
    /// A word for programs: `not_found`, `bad_request`, `unauthorized`, `forbidden`, `timeout`,
    /// `damaged`, `busy`, `not_kept`, `failed`.
    pub code: &'static str,
    /// A sentence for people: what failed, on what, and what to do.
    pub message: String,
}

/// The answer of a question, or the reason why it has no answer.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            status: status.as_u16(),
            code,
            message: message.into(),
        }
    }

    /// The subject of the question does not exist.
    pub fn not_found(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The content of a version is not available.
    pub fn not_kept(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_kept", message)
    }

    /// The request is wrong.
    pub fn bad_request(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// The request has no valid token.
    pub fn unauthorized(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The request is not allowed from any client.
    pub fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The question took too long.
    pub fn timeout(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message)
    }

    /// The range of bytes does not exist.
    pub fn no_such_range(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_request", message)
    }

    /// Anything else.
    pub fn failed(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }

    /// True if the connection to the store should not be used again.
    pub fn spoils_connection(&self) -> bool {
        matches!(self.code, "damaged" | "busy" | "failed")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = crate::reply::json(&ProblemBody { error: self });
        *response.status_mut() = status;
        response
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Problem {
        use store::Error::*;
        let line = error_chain(&error);
        match error {
            Interrupted(_) => Problem::timeout(
                "the question took too long and was stopped; narrow it, or ask in the terminal",
            ),
            Corrupt { .. } | Damaged(_) | NotOurs(_) | BadFormat(_) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", line)
            }
            Busy(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", line),
            NoRun(_) | NoStore(_) => Problem::not_found(line),
            _ => Problem::failed(line),
        }
    }
}

impl From<query::Error> for Problem {
    fn from(error: query::Error) -> Problem {
        let line = error_chain(&error);
        match error {
            query::Error::Store(error) => error.into(),
            query::Error::BadPattern(..) | query::Error::Ambiguous(..) => {
                Problem::bad_request(line)
            }
            _ => Problem::not_found(line),
        }
    }
}

impl From<backstory_workflow::Error> for Problem {
    fn from(error: backstory_workflow::Error) -> Problem {
        match error {
            backstory_workflow::Error::Query(error) => error.into(),
            backstory_workflow::Error::Store(error) => error.into(),
            other => Problem::not_found(error_chain(&other)),
        }
    }
}

impl From<backstory_currency::Error> for Problem {
    fn from(error: backstory_currency::Error) -> Problem {
        use backstory_currency::Error;
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Workflow(error) => error.into(),
            other => Problem::not_found(error_chain(&other)),
        }
    }
}

impl From<backstory_scene::Error> for Problem {
    fn from(error: backstory_scene::Error) -> Problem {
        use backstory_scene::Error;
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            other => Problem::not_found(error_chain(&other)),
        }
    }
}

impl From<backstory_replay::Error> for Problem {
    fn from(error: backstory_replay::Error) -> Problem {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = error.source();
        while let Some(inner) = cause {
            if let Some(store::Error::Interrupted(_)) = inner.downcast_ref::<store::Error>() {
                return Problem::timeout("the comparison took too long and was stopped");
            }
            cause = inner.source();
        }
        Problem::not_found(error_chain(&error))
    }
}
