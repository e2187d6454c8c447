//! The application without a port: the routes, and the gate before them.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::site::Site;
use crate::{api, page};

/// The routes.
pub fn router(site: &Site) -> Router {
    Router::new()
        .nest("/api/v1", api::router())
        .fallback(page_file)
        .layer(middleware::from_fn_with_state(site.clone(), admit))
        .with_state(site.clone())
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
