//! `GET /versions/{version}/bytes`: which bytes of which files a range of a version came from.

use axum::extract::{Path, State};
use axum::response::Response;
use backstory_graph::model::EntityKind;
use backstory_store::EntityKey;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use crate::params::Params;
use crate::path_text::PathText;
use crate::problem::{Answer, Problem};
use crate::readers::Reading;
use crate::setup::{ByteOrigins, ByteSource, ByteWriter};
use crate::site::Site;

/// The bytes behind a range of a version. Ends of ranges are behind the last byte.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ByteView {
    /// The run that wrote the version was followed by the byte engine.
    pub known: bool,
    /// The files, pipes and others that the bytes came from.
    pub sources: Vec<ByteSourceRow>,
    /// The functions that wrote the bytes.
    pub written_by: Vec<ByteWriterRow>,
    /// Bytes of the range that came from no input: constants of programs.
    pub constant: Vec<(u64, u64)>,
    /// Why more bytes are possible.
    pub possible: Vec<String>,
    /// The ranges are coarser than bytes.
    pub coarse: bool,
}

/// A source of bytes.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ByteSourceRow {
    /// `file`, `pipe`, `socket`, `device` or `arguments`.
    pub kind: &'static str,
    /// Its path or name.
    pub path: PathText,
    /// The run that read it.
    pub run: String,
    /// The version that this run read, of a file.
    pub version: Option<String>,
    /// Bytes that were only moved.
    pub copied: Vec<(u64, u64)>,
    /// Bytes that were operands.
    pub computed: Vec<(u64, u64)>,
    /// Other bytes that decided by branches or comparisons.
    pub implicit: Vec<(u64, u64)>,
}

/// Bytes that the same functions wrote.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ByteWriterRow {
    /// The bytes.
    pub ranges: Vec<(u64, u64)>,
    /// The functions that were active, the innermost first. Without one, the calls are possible.
    pub functions: Vec<WritingFunctionRow>,
    /// The recorded calls of functions that wrote the file.
    pub calls: Vec<String>,
    /// All of this in words: `written by …`, or `possibly written in …`. `null`: nothing is known.
    pub how: Option<String>,
}

/// A function that was active at a write.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct WritingFunctionRow {
    /// Its name.
    pub name: String,
    /// The name of its source file. Empty without debugging information.
    pub file: String,
    /// The line of the call, or of the write.
    pub line: Option<u64>,
}

/// The bytes behind a range of a version, if the byte engine followed its run.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/versions/{version}/bytes",
    params(
        ("version" = String, Path), ("start" = Option<u64>, Query), ("end" = Option<u64>, Query)
    ),
    responses((status = 200, body = ByteView), (status = 404, body = crate::problem::ProblemBody))
))]
pub async fn byte_view(
    State(site): State<Site>,
    Path(version): Path<String>,
    params: Params,
) -> Answer<Response> {
    params.only(&["start", "end"])?;
    let start = params.number("start", 0, usize::MAX)? as u64;
    let end = params.number("end", usize::MAX, usize::MAX)? as u64;
    site.answer(move |site, reading| {
        let key = ids::version(reading, &version)?;
        view(site, reading, key, (start, end))
    })
    .await
}

fn view(
    site: &Site,
    reading: &Reading<'_>,
    key: EntityKey,
    (start, end): (u64, u64),
) -> Answer<ByteView> {
    let entity = reading.store.entity(key)?;
    let size = entity
        .ident
        .map_or(u64::MAX, |ident| ident.size.max(0) as u64);
    let Some(record) = reading.store.run_by_key(key.run())? else {
        return Ok(ByteView::default());
    };
    let range = start.min(size)..end.min(size).max(start.min(size));
    let found = (site.setup.hooks.bytes)(&record.header.id, &entity.path, range);
    let Some(found) = found.map_err(Problem::failed)? else {
        return Ok(ByteView::default());
    };
    let ByteOrigins {
        sources,
        writers,
        constant,
        possible,
        coarse,
    } = found;
    let sources = sources.into_iter().map(|source| row(reading, source));
    Ok(ByteView {
        known: true,
        sources: sources.collect::<Answer<_>>()?,
        written_by: writers.into_iter().map(writer).collect(),
        constant,
        possible,
        coarse,
    })
}

fn row(reading: &Reading<'_>, source: ByteSource) -> Answer<ByteSourceRow> {
    let version = match source.kind {
        "file" => version_read(reading, &source.run, &source.path)?,
        _ => None,
    };
    Ok(ByteSourceRow {
        kind: source.kind,
        path: source.path.as_slice().into(),
        run: source.run,
        version: version.map(ids::of_version),
        copied: source.copied,
        computed: source.computed,
        implicit: source.implicit,
    })
}

fn writer(writer: ByteWriter) -> ByteWriterRow {
    let functions = writer.functions.into_iter();
    let functions = functions.map(|function| WritingFunctionRow {
        name: function.name,
        file: function.file,
        line: function.line,
    });
    ByteWriterRow {
        ranges: writer.ranges,
        functions: functions.collect(),
        calls: writer.calls,
        how: writer.how,
    }
}

/// The version of a file that was there before a run.
fn version_read(reading: &Reading<'_>, run: &str, path: &[u8]) -> Answer<Option<EntityKey>> {
    let Some(record) = reading.store.run(run)? else {
        return Ok(None);
    };
    let of_run = reading.store.at_path(path)?.into_iter();
    for key in of_run.filter(|key| key.run() == record.key) {
        let entity = reading.store.entity(key)?;
        if entity.kind == EntityKind::File && entity.version == 0 {
            return Ok(Some(key));
        }
    }
    Ok(None)
}
