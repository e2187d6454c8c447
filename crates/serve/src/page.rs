//! The built page: the files that the browser loads, embedded in the program. Only the server's
//! part of the content security policy is here, and the pages for a request that may not pass.

use std::io::Read;

use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use rust_embed::RustEmbed;

use crate::problem::Problem;
use crate::reply;

/// The files of `web/dist`, compressed by `build.rs`.
#[derive(RustEmbed)]
#[folder = "$OUT_DIR/page"]
struct PageFiles;

/// The policy of the page: scripts come from this server alone, and nothing is loaded from any
/// other. Style attributes are allowed, which libraries that draw graphs set.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self' blob:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer, unless the answer has its own.
const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

const HTML: &str = "text/html; charset=utf-8";

/// True if the page was built into this program.
pub fn is_built() -> bool {
    PageFiles::get("index.html.gz").is_some()
}

/// Adds the headers that keep a browser from doing more than it should.
pub fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(PAGE_POLICY));
}

/// The file at a path of the page. Every path that is no file is a view of the page.
pub fn file(path: &str, headers: &HeaderMap) -> Response {
    let name = path.trim_start_matches('/');
    let is_asset = name.starts_with("assets/");
    if !is_built() {
        return without_page();
    }
    let found = match name.is_empty() {
        true => None,
        false => PageFiles::get(&format!("{name}.gz")),
    };
    let (name, file) = match found {
        Some(file) => (name, Some(file)),
        None if is_asset => (name, None),
        None => ("index.html", PageFiles::get("index.html.gz")),
    };
    let Some(file) = file else {
        let mut response = html(
            "There is no such file",
            "The page has no file of this name.",
        );
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = of_gzip(&file.data, media_type(name), headers);
    if is_asset {
        // Their names have a digest of their content.
        let forever = HeaderValue::from_static("private, max-age=31536000, immutable");
        response.headers_mut().insert(CACHE_CONTROL, forever);
    }
    response
}

/// An answer that the build compressed. A client that does not take gzip gets it uncompressed.
pub fn of_gzip(bytes: &[u8], media_type: &'static str, headers: &HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT_ENCODING).map(HeaderValue::as_bytes);
    let zipped = accepted.is_some_and(|all| all.windows(4).any(|word| word == b"gzip"));
    let bytes = match zipped {
        true => bytes.to_vec(),
        false => unzipped(bytes),
    };
    let mut response = reply::of_bytes(bytes, media_type);
    let headers = response.headers_mut();
    if zipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(bytes);
    // The build wrote it.
    drop(reader.read_to_end(&mut plain));
    plain
}

/// The page for a request that may not pass.
pub fn refused(problem: &Problem) -> Response {
    let title = match problem.status {
        401 => "This page needs its token",
        _ => "This request is not allowed",
    };
    let mut response = html(title, &problem.message);
    *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    response
}

fn without_page() -> Response {
    html(
        "This backstory was built without the page",
        "The interface at /api/v1 works. To get the page, install Node 20 and build again with \
         `make build`, or install a package of backstory.",
    )
}

fn html(title: &str, text: &str) -> Response {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>backstory</title>\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <main><h1>{title}</h1><p>{escaped}</p></main></html>\n"
    );
    reply::of_bytes(page.into_bytes(), HTML)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => HTML,
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
