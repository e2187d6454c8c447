//! Plans, verdicts, comparisons and stale steps, decided on literal stores.
#![allow(clippy::unwrap_used)]

mod callers;
mod diff;
mod plan;
#[path = "../../../workflow/tests/literal/scene.rs"]
mod scene;
mod verdict;

use backstory_graph::model::{EntityKind, Relation};
use scene::Scene;

/// `sort in.txt > out.txt`, which also read randomness and looked for a file that was missing.
fn sorted(id: &str, options: &[&str], input: &str, output: &str) -> Scene {
    let words = [&["sort"], options, &["in.txt"]].concat();
    let mut scene = Scene::new(id, &words);
    for directory in ["/usr", "/usr/bin", "/w"] {
        scene.directory(directory);
    }
    let sort = scene.program(None, "/usr/bin/sort", &words, (0, 50));
    let read = scene.before("/w/in.txt", input, 0o100_644);
    scene.edge(sort, read, Relation::Read, (1, 2));
    let random = scene.entity(EntityKind::Device, "/dev/urandom", 0);
    scene.edge(sort, random, Relation::Read, (3, 4));
    let missing = scene.entity(EntityKind::Missing, "/w/sort.conf", 0);
    scene.edge(sort, missing, Relation::Missing, (5, 5));
    let written = scene.version("/w/out.txt", 1, output, 0o100_644);
    scene.edge(sort, written, Relation::Write, (6, 7));
    scene.standard(sort, [None, Some(written), None]);
    scene
}
