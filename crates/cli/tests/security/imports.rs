//! A foreign export makes and removes only files named like a run's id or a digest. If any part of
//! it is wrong, it changes no file.

use crate::oracle::common;
use backstory_contents::transfer::{Kind, Writer};
use backstory_testkit::oracle::{Case, program};
use backstory_testkit::user::User;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below, with its length.
fn all(top: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top).unwrap().flatten() {
        let status = entry.metadata().unwrap();
        match status.is_dir() {
            true => found.extend(all(&entry.path())),
            false => found.push((entry.path(), status.len())),
        }
    }
    found.sort();
    found
}

fn export(sections: &[(Kind, &str, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (kind, name, body) in sections {
        writer
            .section(*kind, name, body.len() as u64, &mut &body[..])
            .unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_hostile_export_makes_and_changes_no_file() {
    const FIRST: Case = program("first", &["cp", "a", "copy"]);
    let bench = common::bench(User::ordinary());
    let (_, store) = bench.recorded(&FIRST, &["--name", "first"]).unwrap();
    let before = bench.files(&store, "first").unwrap();
    let id = super::only_run(&bench, &store);
    let log = fs::read(store.join(format!("runs/{id}.log"))).unwrap();
    let victim = bench.stage().path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let outside = victim.to_str().unwrap();
    let other = "zzzzzzzz";
    let digest = "0".repeat(64);
    let hostile: &[&[(Kind, &str, &[u8])]] = &[
        &[(Kind::Log, "../victim", &log)],
        &[(Kind::Log, outside, &log)],
        &[(Kind::Log, "", &log)],
        &[(Kind::Log, "first\0", &log)],
        &[(Kind::Log, other, &log)],
        &[(Kind::Log, other, b"no log")],
        &[(Kind::Content, &digest, b"another content")],
        &[(Kind::Content, "../../victim", b"a content")],
        &[
            (Kind::Facts, "x", &[0xff; 4096]),
            (Kind::Log, &id, &log[..log.len() / 2]),
        ],
        &[
            (Kind::Label, &id, b"stolen\nnote"),
            (Kind::Content, outside, b""),
        ],
        &[(Kind::Label, &id, b"\xff\xfe")],
    ];
    let logs = all(&store.join("runs"));
    let directory = bench.stage().directory("work").unwrap();
    let file = directory.join("hostile.backstory");
    for (at, sections) in hostile.iter().enumerate() {
        fs::write(&file, export(sections)).unwrap();
        bench.stage().user().owns(&file).unwrap();
        let mut command = bench.stage().backstory(&["store", "import"]);
        command.arg(&file).env("BACKSTORY_STORE", &store);
        let outcome = backstory_testkit::oracle::watch(&mut command, &directory).unwrap();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code(), 1, "{at}: {said}");
        assert!(said.contains("cannot import"), "{at}: {said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{at}");
        assert_eq!(all(&store.join("runs")), logs, "{at}: {said}");
        assert_eq!(bench.files(&store, "first").unwrap(), before, "{at}");
    }
}

/// Beginnings of records whose length covers all the rest. A reader that read each to its end would
/// take 10^12 steps: the test would not end.
#[test]
fn facts_full_of_beginnings_are_read_in_linear_time() {
    let mut body = Vec::new();
    while body.len() < 4 << 20 {
        body.extend(b"bf");
        body.extend(((2 << 20) as u32).to_le_bytes());
    }
    assert!(backstory_store::facts::from_bytes(&body).is_empty());
}
