//! Lists: a page at a time by `cursor`, or as a whole with one JSON object a line.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;

use crate::channel_body::channel;
use crate::params::Params;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::reply::{self, NDJSON};
use crate::site::Site;

/// Bytes that are sent together.
const PIECE: usize = 64 << 10;

/// True if the client wants one object a line.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(NDJSON))
}

/// An answer with one row a line. The rows are written while they are sent.
pub fn of<T: Serialize>(rows: impl Iterator<Item = T> + Send + 'static) -> Response {
    let (sender, body) = channel();
    // The thread ends early if the client leaves: then the send fails.
    tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE);
        for row in rows {
            if serde_json::to_writer(&mut piece, &row).is_err() {
                return;
            }
            piece.push(b'\n');
            if piece.len() >= PIECE
                && sender
                    .blocking_send(Bytes::from(std::mem::take(&mut piece)))
                    .is_err()
            {
                return;
            }
        }
        drop(sender.blocking_send(Bytes::from(piece)));
    });
    reply::of_body(body, NDJSON)
}

/// The rows of a list as the client wants them: all, one a line, or the page of `range`. `page`
/// makes the answer of the rows of a page, the number of all rows, and the next cursor.
pub async fn lines_or_page<T, P>(
    site: &Site,
    headers: &HeaderMap,
    range: RowRange,
    find: impl FnOnce(&Reading<'_>) -> Answer<Vec<T>> + Send + 'static,
    page: impl FnOnce(Vec<T>, usize, Option<String>) -> P + Send + 'static,
) -> Answer<Response>
where
    T: Serialize + Send + 'static,
    P: Serialize,
{
    if is_wanted(headers) {
        return Ok(of(site.readers.ask(find).await?.into_iter()));
    }
    site.answer(move |_, reading| {
        let rows = find(reading)?;
        let total = rows.len();
        let (rows, next) = range.cut(rows);
        Ok(page(rows, total, next))
    })
    .await
}

/// A place in a list that does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRange {
    first: usize,
    limit: usize,
}

impl RowRange {
    /// Reads `cursor` and `limit`.
    pub fn new(params: &Params, usual: usize, most: usize) -> Answer<RowRange> {
        let first = match params.text("cursor")? {
            None => 0,
            Some(text) => text
                .parse()
                .map_err(|_| Problem::bad_request("the cursor is none of this list"))?,
        };
        let limit = params.number("limit", usual, most)?;
        Ok(RowRange { first, limit })
    }

    /// The rows of this page, and the cursor of the next one.
    pub fn cut<T>(&self, rows: Vec<T>) -> (Vec<T>, Option<String>) {
        let end = self.first.saturating_add(self.limit);
        let next = (end < rows.len()).then(|| end.to_string());
        let page = rows.into_iter().skip(self.first).take(self.limit);
        (page.collect(), next)
    }
}
