//! Writes answers.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

/// The media type of a stream of JSON objects, one a line.
pub const NDJSON: &str = "application/x-ndjson";

/// An answer as JSON.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => of_bytes(bytes, "application/json"),
        Err(error) => {
            let text = format!("{{\"error\":{{\"code\":\"failed\",\"message\":\"{error}\"}}}}");
            let mut response = of_bytes(text.into_bytes(), "application/json");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// An answer that is written already.
pub fn of_bytes(bytes: Vec<u8>, media_type: &'static str) -> Response {
    of_body(Body::from(bytes), media_type)
}

/// An answer that is still being written.
pub fn of_body(body: Body, media_type: &'static str) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
