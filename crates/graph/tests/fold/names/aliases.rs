//! Uses of a file by one of its names.

use super::told_of;
use crate::common::{OUT, Scene, text};
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};
use backstory_graph::model::Relation;

/// The relations by each name of the newest version of `path`. `Read` means seen, and `Write?`
/// means possible.
fn by_names(s: &Scene, path: &[u8]) -> Vec<(String, String)> {
    let graph = s.graph();
    let entity = graph.newest(path).unwrap();
    let all = [
        Relation::Read,
        Relation::Stat,
        Relation::Write,
        Relation::Delete,
        Relation::Rename,
        Relation::Meta,
    ];
    let names = std::iter::once(&entity.path).chain(&entity.aliases);
    names
        .zip(&entity.by_name)
        .map(|(name, by)| {
            let words = all.iter().filter_map(|relation| match relation.bit() {
                bit if by.seen & bit != 0 => Some(format!("{relation:?}")),
                bit if by.possible & bit != 0 => Some(format!("{relation:?}?")),
                _ => None,
            });
            (text(name), words.collect::<Vec<_>>().join(" "))
        })
        .collect()
}

#[test]
fn an_operation_by_one_hard_link_is_not_one_by_the_other() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "new", OUT, 3);
    s.write(2, 3);
    s.link(2, "new", "hard");
    s.push(
        2,
        Outcome::Done(0),
        Op::Meta {
            dir: CWD,
            path: b"hard".as_slice().into(),
            what: MetadataPart::Mode,
            link: false,
        },
    );
    s.unlink(2, "hard");
    s.close(2, 3);
    let wanted = [
        ("/w/new".into(), "Write Meta".into()),
        ("/w/hard".into(), "Delete Meta".into()),
    ];
    let told = by_names(&s, b"/w/new");
    assert_eq!(told, wanted, "{}", told_of(&s));
}

#[test]
fn a_use_by_a_new_name_is_not_one_by_the_old() {
    let mut s = Scene::new(&["sh"]);
    s.kernel_open(2, "old", OUT);
    s.rename(2, "old", "new");
    s.runs(2, 3, &["cat"]);
    s.kernel_open(3, "new", 0);
    s.exits(3, 2);
    let told = by_names(&s, b"/w/new");
    assert_eq!(
        told[0],
        ("/w/new".into(), "Read Write? Rename".into()),
        "{}",
        told_of(&s)
    );
    assert!(
        told[1..].iter().all(|(_, words)| words == "Write?"),
        "{told:?}"
    );
}

#[test]
fn an_operation_through_a_symbolic_link_is_one_on_its_target() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "real", "soft");
    s.writes(2, "soft", OUT);
    s.reads(2, "real");
    let wanted = [
        ("/w/real".into(), "Read Write".into()),
        ("/w/soft".into(), "Write".into()),
    ];
    assert_eq!(by_names(&s, b"/w/real"), wanted, "{}", told_of(&s));
}
