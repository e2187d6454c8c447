//! The routes of the lineage.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;

use super::graph_rows::FoldPage;
use super::question::{LineageQuestion, PARAMETERS};
use crate::api::row_stream::RowRange;
use crate::params::Params;
use crate::problem::{Answer, Problem};
use crate::site::Site;

/// Rows of a page, usually and at most.
const USUAL: usize = 500;
const MOST: usize = 5000;

/// The graph around a file: what it came from (`of`), or what came from it (`uses`).
///
/// Files of packages, of the system and of caches are counted nodes, unless `noise=show`. `depth`
/// counts commands at the level of commands, else processes. `exclude`, `only` and `through` are
/// globs of paths.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/lineage",
    params(
        ("path" = Option<String>, Query), ("version" = Option<String>, Query),
        ("run" = Option<String>, Query),
        ("direction" = Option<String>, Query, description = "of or uses"),
        ("level" = Option<String>, Query, description = "command or process"),
        ("depth" = Option<usize>, Query), ("nodes" = Option<usize>, Query),
        ("possible" = Option<bool>, Query), ("lookups" = Option<bool>, Query),
        ("exclude" = Option<Vec<String>>, Query), ("only" = Option<Vec<String>>, Query),
        ("through" = Option<Vec<String>>, Query),
        ("noise" = Option<String>, Query, description = "fold or show"),
    ),
    responses((status = 200, body = super::graph_rows::LineageView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn lineage_view(State(site): State<Site>, params: Params) -> Answer<Response> {
    params.only(&PARAMETERS)?;
    let question = LineageQuestion::new(&params)?;
    site.answer(move |_, reading| question.graph(reading)).await
}

/// The nodes around one node. With the token `reach` of that node, only those that the subject of
/// the first question can have come from.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/lineage/hop",
    params(
        ("node" = String, Query), ("reach" = Option<String>, Query),
        ("direction" = Option<String>, Query), ("level" = Option<String>, Query),
        ("nodes" = Option<usize>, Query), ("possible" = Option<bool>, Query),
        ("lookups" = Option<bool>, Query), ("exclude" = Option<Vec<String>>, Query),
        ("noise" = Option<String>, Query), ("depth" = Option<usize>, Query),
        ("run" = Option<String>, Query),
    ),
    responses((status = 200, body = super::graph_rows::LineageView), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn lineage_hop(State(site): State<Site>, params: Params) -> Answer<Response> {
    let known: Vec<&str> = PARAMETERS
        .iter()
        .chain(&["node", "reach"])
        .copied()
        .collect();
    params.only(&known)?;
    params.needed("node")?;
    let node = params.text("node")?.unwrap_or_default().to_owned();
    let reach = params.text("reach")?.map(str::parse::<i64>).transpose();
    let reach = reach.map_err(|_| Problem::bad_request("the parameter 'reach' is none of ours"))?;
    let question = LineageQuestion::new(&params)?.near();
    site.answer(move |_, reading| question.hop(reading, &node, reach))
        .await
}

/// The files that stand behind a counted node: `fold` is its id, and the other parameters are those
/// of the question that had it in its answer.
#[cfg_attr(test, utoipa::path(
    get,
    path = "/lineage/fold",
    params(
        ("fold" = String, Query), ("limit" = Option<usize>, Query),
        ("cursor" = Option<String>, Query),
        ("path" = Option<String>, Query), ("version" = Option<String>, Query),
        ("run" = Option<String>, Query), ("direction" = Option<String>, Query),
        ("level" = Option<String>, Query), ("depth" = Option<usize>, Query),
        ("nodes" = Option<usize>, Query), ("possible" = Option<bool>, Query),
        ("lookups" = Option<bool>, Query), ("exclude" = Option<Vec<String>>, Query),
        ("only" = Option<Vec<String>>, Query), ("through" = Option<Vec<String>>, Query),
    ),
    responses((status = 200, body = FoldPage), (status = "4XX", body = crate::problem::ProblemBody))
))]
pub async fn lineage_fold(State(site): State<Site>, params: Params) -> Answer<Response> {
    let own = ["fold", "limit", "cursor"];
    let known: Vec<&str> = PARAMETERS.iter().chain(&own).copied().collect();
    params.only(&known)?;
    params.needed("fold")?;
    let wanted = params.text("fold")?.unwrap_or_default().to_owned();
    let range = RowRange::new(&params, USUAL, MOST)?;
    let question = LineageQuestion::new(&params)?;
    site.answer(move |_, reading| {
        let (draft, folds) = question.folds(reading)?;
        let fold = folds.into_iter().find(|fold| fold.node.id == wanted);
        let fold = fold.ok_or_else(|| {
            Problem::not_found(format!("the graph of this question has no node {wanted}"))
        })?;
        let members: Vec<usize> = fold.members.into_iter().collect();
        let total = members.len();
        let (page, next) = range.cut(members);
        let here: BTreeSet<usize> = page.iter().copied().into_tree();
        let of = fold.node.of;
        let links = draft.links.iter().filter(|(from, to, link)| {
            // A file of the system has links to other commands, too, whose own nodes count it.
            let mine = of
                .as_ref()
                .is_none_or(|of| *of == link.from || *of == link.to);
            mine && (here.contains(from) || here.contains(to))
        });
        Ok(FoldPage {
            links: links.map(|(_, _, link)| link.clone()).collect(),
            members: page.iter().map(|&at| draft.nodes[at].clone()).collect(),
            total,
            next,
        })
    })
    .await
}
