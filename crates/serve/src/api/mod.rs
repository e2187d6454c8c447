//! The JSON interface: one file for each resource. Each has the types of its answers, its routes,
//! and the questions that they ask.
//!
//! [`document`] is the description of the whole as OpenAPI. `web/openapi.json` is a copy for the
//! page, which a test keeps equal.

mod activity_bars;
mod row_stream;
mod run_row;
mod run_search;
mod runs;
mod store_info;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use utoipa::OpenApi;

use crate::problem::Problem;
use crate::reply;
use crate::site::Site;

/// The description of the interface.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "backstory",
        description = "Questions to one store of recorded runs. Times are seconds since 1970. A byte \
                       that is not UTF-8 is a lone surrogate in answers (\\udcXX) and %XX in parameters. \
                       Each request needs the token: as a cookie, or as `Authorization: Bearer TOKEN`.",
        license(name = "MIT OR Apache-2.0")
    ),
    servers((url = "/api/v1")),
    paths(store_info::store_info, runs::run_page, activity_bars::run_activity),
    components(schemas(crate::problem::ProblemBody))
)]
struct InterfaceDocument;

/// The description of the interface as OpenAPI 3.1.
pub fn document() -> utoipa::openapi::OpenApi {
    InterfaceDocument::openapi()
}

/// All routes, below `/api/v1`.
pub fn router() -> Router<Site> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/store", get(store_info::store_info))
        .route("/runs", get(runs::run_page))
        .route("/runs/activity", get(activity_bars::run_activity))
        .fallback(unknown_route)
}

async fn openapi() -> Response {
    reply::json(&document())
}

async fn unknown_route() -> Problem {
    Problem::not_found("there is no such route; /api/v1/openapi.json lists all")
}
