//! The JSON interface: one file for each resource. Each has the types of its answers, its routes,
//! and the questions that they ask.
//!
//! [`document`] is the description of the whole as OpenAPI. `web/openapi.json` is a copy, which a
//! test keeps equal. The server sends the copy, and the page is built with it. The code behind
//! [`document`] takes half a megabyte, and so stays out of the program.

mod activity_bars;
mod byte_view;
mod comparison_view;
mod content_view;
mod difference;
mod file_states;
mod file_view;
mod finder;
mod ids;
mod inside_view;
mod job_row;
mod job_view;
mod lineage;
mod live;
mod marks;
mod mending;
mod peers;
mod processes;
mod row_stream;
mod run_files;
mod run_row;
mod run_search;
mod run_view;
mod runs;
mod scene;
mod store_info;
mod touch_row;
mod version_content;
mod version_view;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
#[cfg(test)]
use utoipa::OpenApi;

use crate::page;
use crate::problem::Problem;
use crate::site::Site;

/// The description of the interface, which a test compares with `web/openapi.json`.
#[cfg(test)]
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
    paths(
        store_info::store_info,
        runs::run_page,
        activity_bars::run_activity,
        run_view::run_view,
        processes::process_page,
        processes::wait_page,
        marks::mark_page,
        run_files::run_file_page,
        peers::peer_list,
        job_view::job_view,
        scene::scene_view,
        file_view::file_view,
        version_view::version_view,
        version_view::touch_page,
        inside_view::inside_view,
        byte_view::byte_view,
        version_content::version_content,
        content_view::content_view,
        difference::difference_view,
        lineage::lineage_view,
        lineage::lineage_hop,
        lineage::lineage_fold,
        comparison_view::comparison_view,
        file_states::status_list,
        finder::search,
        live::live_list,
        live::live_events,
        mending::mend,
    ),
    components(schemas(crate::problem::ProblemBody))
)]
#[cfg(test)]
struct InterfaceDocument;

/// All routes, below `/api/v1`.
pub fn router() -> Router<Site> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/store", get(store_info::store_info))
        .route("/runs", get(runs::run_page))
        .route("/runs/activity", get(activity_bars::run_activity))
        .route("/runs/{run}", get(run_view::run_view))
        .route("/runs/{run}/processes", get(processes::process_page))
        .route("/runs/{run}/waits", get(processes::wait_page))
        .route("/runs/{run}/marks", get(marks::mark_page))
        .route("/runs/{run}/files", get(run_files::run_file_page))
        .route("/runs/{run}/peers", get(peers::peer_list))
        .route("/job", get(job_view::job_view))
        .route("/scene", get(scene::scene_view))
        .route("/file", get(file_view::file_view))
        .route("/versions/{version}", get(version_view::version_view))
        .route("/versions/{version}/users", get(version_view::touch_page))
        .route("/versions/{version}/inside", get(inside_view::inside_view))
        .route("/versions/{version}/bytes", get(byte_view::byte_view))
        .route(
            "/versions/{version}/content",
            get(version_content::version_content),
        )
        .route(
            "/versions/{version}/preview",
            get(content_view::content_view),
        )
        .route("/diff", get(difference::difference_view))
        .route("/lineage", get(lineage::lineage_view))
        .route("/lineage/hop", get(lineage::lineage_hop))
        .route("/lineage/fold", get(lineage::lineage_fold))
        .route("/compare", get(comparison_view::comparison_view))
        .route("/status", get(file_states::status_list))
        .route("/search", get(finder::search))
        .route("/live", get(live::live_list))
        .route("/live/events", get(live::live_events))
        .route("/rerun", post(mending::mend))
        .fallback(unknown_route)
}

/// The copy, compressed by `build.rs`.
const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

async fn openapi(headers: HeaderMap) -> Response {
    page::of_gzip(DESCRIPTION, "application/json", &headers)
}

async fn unknown_route() -> Problem {
    Problem::not_found("there is no such route; /api/v1/openapi.json lists all")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BACKSTORY_RENEW=1 cargo test -p backstory-serve --lib openapi` writes the copy anew.
    #[test]
    fn the_page_is_built_with_the_openapi_description_of_the_server() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/openapi.json");
        let document = InterfaceDocument::openapi().to_pretty_json().unwrap() + "\n";
        if std::env::var_os("BACKSTORY_RENEW").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, &document).unwrap();
        }
        let copy = std::fs::read_to_string(path).unwrap();
        assert!(
            copy == document,
            "{path} is out of date: run this test with BACKSTORY_RENEW=1"
        );
    }
}
