//! `GET /versions/{version}/content`: the bytes of a version, for a picture or a download.
//!
//! The bytes are the user's, and may be hostile: a recorded HTML file must not run in this page's
//! name. They are sent with a media type that a browser does not execute, without sniffing, and
//! under a policy that forbids everything.

use std::io::Read;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use super::ids;
use crate::channel_body::channel;
use crate::media_type::{HEAD, MediaType};
use crate::params::Params;
use crate::problem::{Answer, Problem};
use crate::reply;
use crate::site::Site;
use crate::version_bytes::VersionBytes;

/// Bytes that are sent together.
const PIECE: usize = 256 << 10;

/// The policy of a content: nothing is loaded, no script runs, and it is in no origin.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// The bytes of a version, or a range of them. Images have their media type; everything else is
/// `application/octet-stream`, to be saved.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}/content",
    params(("version" = String, Path), ("range" = Option<String>, Header)),
    responses(
        (status = 200, body = [u8], content_type = "application/octet-stream"),
        (status = 206, body = [u8], content_type = "application/octet-stream"),
        (status = "4XX", body = crate::problem::ProblemBody)
    )
))]
pub async fn version_content(
    State(site): State<Site>,
    Path(version): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    params.only(&[])?;
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let range = range.map(str::to_owned);
    let (content, media, range) = site
        .readers
        .ask(move |reading| {
            let key = ids::version(reading, &version)?;
            let mut content = VersionBytes::open(reading, key)?;
            let range = byte_range(range.as_deref(), content.size)?;
            let mut head = Vec::new();
            let read = content.by_ref().take(HEAD as u64).read_to_end(&mut head);
            read.map_err(|error| Problem::failed(error.to_string()))?;
            let media = MediaType::of(&content.path, &head);
            // Opened again, since a stored content cannot be rewound.
            let mut content = VersionBytes::open(reading, key)?;
            if let Some((first, _)) = range {
                content.skip(first)?;
            }
            Ok((content, media, range))
        })
        .await?;
    let (first, end) = range.unwrap_or((0, content.size));
    let size = content.size;
    let disposition = disposition(&content.path, media);
    let mut response = reply::of_body(body(content, end - first), media.for_browser());
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(end - first));
    headers.insert(CONTENT_DISPOSITION, disposition);
    if range.is_some() {
        let text = format!("bytes {first}-{}/{size}", end.saturating_sub(1));
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// Sends `count` bytes from where the content stands. A content that cannot be read to its end ends
/// the connection, which the client notices by the length.
fn body(mut content: VersionBytes, count: u64) -> Body {
    let (sender, body) = channel();
    tokio::task::spawn_blocking(move || {
        let mut left = count;
        while left > 0 {
            let mut piece = vec![0; PIECE.min(left as usize)];
            match content.read(&mut piece) {
                Ok(read) if read > 0 => {
                    piece.truncate(read);
                    left -= read as u64;
                    if sender.blocking_send(Bytes::from(piece)).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    });
    body
}

/// The first byte and the end of `bytes=A-B`, `bytes=A-` or `bytes=-N`. Several ranges count as
/// none, which HTTP allows.
fn byte_range(text: Option<&str>, size: u64) -> Answer<Option<(u64, u64)>> {
    let Some(range) = text.and_then(|text| text.strip_prefix("bytes=")) else {
        return Ok(None);
    };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else {
        return Ok(None);
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let found = match (number(first), number(last)) {
        (Some(first), Some(last)) => Some((first, last.saturating_add(1).min(size))),
        (Some(first), None) if last.is_empty() => Some((first, size)),
        (None, Some(count)) if first.is_empty() => Some((size.saturating_sub(count), size)),
        _ => return Ok(None),
    };
    match found.filter(|(first, end)| first < end) {
        Some(range) => Ok(Some(range)),
        None => Err(Problem::no_such_range(format!(
            "the content has {size} bytes, and the range is outside"
        ))),
    }
}

/// Images are shown, everything else is saved. The name has no character with a meaning.
fn disposition(path: &[u8], media: MediaType) -> HeaderValue {
    let how = match media {
        MediaType::Image(_) | MediaType::Svg => "inline",
        _ => "attachment",
    };
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut encoded = String::new();
    for &byte in name {
        match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => encoded.push(byte as char),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&format!("{how}; filename*=UTF-8''{encoded}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_http_has_it() {
        let of = |text: &str| byte_range(Some(text), 10).map_err(|problem| problem.status);
        assert_eq!(of("bytes=2-4"), Ok(Some((2, 5))));
        assert_eq!(of("bytes=2-"), Ok(Some((2, 10))));
        assert_eq!(of("bytes=-3"), Ok(Some((7, 10))));
        assert_eq!(of("bytes=2-999"), Ok(Some((2, 10))));
        assert_eq!(of("bytes=10-"), Err(416));
        assert_eq!(of("bytes=1-2,4-5"), Ok(None));
        assert_eq!(of("lines=1-2"), Ok(None));
    }
}
