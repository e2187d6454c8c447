//! Files used through symbolic links that are older than the run and that the run removes.
#![allow(clippy::unwrap_used)]

use crate::common::{After, OUT, START, STEP, Scene, bytes, ident, text, told};
use backstory_eventlog::event::{CWD, Op};
use backstory_files::Ident;

/// Notes that the thread's next call removes `path`, a link with this text.
fn link_text(s: &mut Scene, path: &str, link_text: &str) {
    let link = Op::LinkText {
        dir: CWD,
        path: bytes(path),
        text: bytes(link_text),
    };
    s.done(2, link);
}

fn unlinks_link(s: &mut Scene, path: &str, text: &str) {
    link_text(s, path, text);
    s.unlink(2, path).ident = Some(link(70));
}

fn link(ino: u64) -> Ident {
    Ident {
        mode: 0o120_777,
        ..ident(ino, START - 9 * STEP, START - 9 * STEP)
    }
}

/// The path and the aliases of the newest version of `path`.
fn names(s: &Scene, path: &str) -> (String, Vec<String>) {
    let graph = s.graph();
    let newest = graph.newest(path.as_bytes());
    let newest = newest.unwrap_or_else(|| panic!("{}", told(&graph)));
    assert!(newest.last, "{}", told(&graph));
    let aliases = newest.aliases.iter().map(|alias| text(alias)).collect();
    (text(&newest.path), aliases)
}

/// Writes `written`, which is `real/new` after the run. A link `dl2` to `dl` still exists then.
fn writes(written: &str) -> Scene {
    let mut s = Scene::new(&["sh"]);
    s.writes(2, written, OUT);
    let file = ident(7, s.time - STEP * 2, s.time - STEP);
    s.events.last_mut().unwrap().ident = Some(file);
    let mut after = After::default();
    after.files.insert(b"/w/real/new".to_vec(), file);
    after.links.insert(b"/w/dl2".to_vec(), link(71));
    after.texts.insert(b"/w/dl2".to_vec(), b"dl".to_vec());
    s.after = Some(after);
    s
}

#[test]
fn a_file_written_through_a_removed_link_has_the_name_that_is_there() {
    let mut s = writes("dl/new");
    unlinks_link(&mut s, "dl", "real");
    let expected = ("/w/real/new".to_owned(), vec!["/w/dl/new".to_owned()]);
    assert_eq!(names(&s, "/w/real/new"), expected);
}

#[test]
fn a_file_written_through_a_link_to_a_removed_link_has_the_name_that_is_there() {
    let mut s = writes("dl2/new");
    unlinks_link(&mut s, "dl", "real");
    let expected = ("/w/real/new".to_owned(), vec!["/w/dl2/new".to_owned()]);
    assert_eq!(names(&s, "/w/real/new"), expected);
}

#[test]
fn a_removed_link_to_the_file_itself_leaves_the_file_its_name() {
    let mut s = writes("lnk");
    unlinks_link(&mut s, "lnk", "real/new");
    let expected = ("/w/real/new".to_owned(), vec!["/w/lnk".to_owned()]);
    assert_eq!(names(&s, "/w/real/new"), expected);
    assert!(told(&s.graph()).contains("sh#1 Delete lnk@0"));
}

#[test]
fn a_directory_renamed_after_the_removal_takes_the_name_along() {
    let mut s = writes("dl2/new");
    unlinks_link(&mut s, "dl", "before");
    s.rename(2, "before", "real");
    let expected = ("/w/real/new".to_owned(), vec!["/w/dl2/new".to_owned()]);
    assert_eq!(names(&s, "/w/real/new"), expected);
}

#[test]
fn a_link_replaced_by_a_rename_leaves_files_behind_it_their_names() {
    let mut s = writes("dl/new");
    s.symlink(2, "other", "tmp");
    link_text(&mut s, "dl", "real");
    s.rename(2, "tmp", "dl").ident = Some(link(70));
    s.after
        .as_mut()
        .unwrap()
        .links
        .insert(b"/w/dl".to_vec(), link(72));
    let expected = ("/w/real/new".to_owned(), vec!["/w/dl/new".to_owned()]);
    assert_eq!(names(&s, "/w/real/new"), expected);
}

#[test]
fn a_file_read_through_a_removed_link_is_the_one_that_is_there() {
    let mut s = Scene::new(&["cat"]);
    s.reads(2, "dl/in");
    unlinks_link(&mut s, "dl", "real");
    let mut after = After::default();
    let old = ident(7, START - 9 * STEP, START - 9 * STEP);
    after.files.insert(b"/w/real/in".to_vec(), old);
    s.after = Some(after);
    let expected = ("/w/real/in".to_owned(), vec!["/w/dl/in".to_owned()]);
    assert_eq!(names(&s, "/w/real/in"), expected);
    assert_eq!(s.graph().newest(b"/w/real/in").unwrap().ident, Some(old));
}

#[test]
fn another_file_behind_the_removed_link_is_not_taken_for_the_one_that_was_used() {
    let mut s = writes("dl/new");
    unlinks_link(&mut s, "dl", "real");
    let other = ident(8, s.time, s.time);
    let after = s.after.as_mut().unwrap();
    after.files.insert(b"/w/real/new".to_vec(), other);
    assert!(s.graph().newest(b"/w/real/new").is_none());
}
