//! Names: renames, links, directories that are gone. The oracle is `strace` of the same commands.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use backstory_testkit::need::needs;

use crate::filesystem::watched::{Kind, watched};

#[test]
fn a_file_keeps_its_origin_when_it_and_its_directory_are_renamed() {
    let filled = |at: &std::path::Path| {
        fs::write(at.join("a"), "text\n").unwrap();
        fs::create_dir_all(at.join("d/e")).unwrap();
    };
    let Some(mut watched) = watched("renames", Kind::Ext4, filled) else {
        return;
    };
    watched.shell("cat a > d/e/new; mv d/e/new d/e/b; mv d f; cat f/e/b > c");
    watched.end();
    let found = watched.inputs("c");
    assert!(found.contains(&"a".to_owned()), "{found:?}");
    assert!(found.contains(&"f/e/b".to_owned()), "{found:?}");
}

#[test]
fn two_files_that_exchange_their_names_exchange_their_origins() {
    let filled = |at: &std::path::Path| {
        fs::write(at.join("one"), "1\n").unwrap();
        fs::write(at.join("two"), "2\n").unwrap();
    };
    let Some(mut watched) = watched("exchanged names", Kind::Ext4, filled) else {
        return;
    };
    watched.shell("cat one > x; cat two > y");
    let (x, y) = (watched.at.join("x"), watched.at.join("y"));
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(rustix::fs::CWD, x, rustix::fs::CWD, y, flags).unwrap();
    watched.shell("cat x > z");
    watched.end();
    let found = watched.inputs("z");
    assert!(found.contains(&"two".to_owned()), "{found:?}");
    assert!(!found.contains(&"one".to_owned()), "{found:?}");
}

#[test]
fn a_file_that_has_another_name_is_the_same_file() {
    let filled = |at: &std::path::Path| fs::write(at.join("a"), "text\n").unwrap();
    let Some(mut watched) = watched("hard and symbolic links", Kind::Ext4, filled) else {
        return;
    };
    watched.shell("cat a > b; ln b c; ln -s c s; cat s > d");
    watched.end();
    let found = watched.inputs("d");
    assert!(found.contains(&"a".to_owned()), "{found:?}");
}

#[test]
fn files_of_a_directory_that_is_removed_at_once_keep_their_paths() {
    let filled = |at: &std::path::Path| fs::write(at.join("a"), "text\n").unwrap();
    let Some(mut watched) = watched("a removed directory", Kind::Tmpfs, filled) else {
        return;
    };
    watched.shell("mkdir -p t/u; cat a > t/u/v; cat t/u/v > b; rm -r t");
    watched.end();
    let found = watched.inputs("b");
    assert!(found.contains(&"a".to_owned()), "{found:?}");
    let files = watched.answer(&["files", "--json"]);
    assert!(files.contains("/t/u/v"), "{files}");
    let show = watched.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
}

/// The names below `root` that calls of `strace` opened, renamed, made or removed.
fn traced(text: &str, root: &str) -> BTreeSet<String> {
    let calls = text.lines().filter(|line| !line.contains(") = -1 "));
    let words = calls.flat_map(|line| line.split('"').skip(1).step_by(2));
    let below = words.filter_map(|word| word.strip_prefix(root));
    let names = below.filter(|name| !name.is_empty());
    names
        .map(|name| name.trim_start_matches('/').to_owned())
        .collect()
}

#[test]
fn every_file_that_strace_sees_used_is_in_the_record() {
    let what = "the files of strace in a watched file system";
    if !needs(what, &["strace", "tar", "gzip"]) {
        return;
    }
    let filled = |at: &std::path::Path| {
        fs::create_dir_all(at.join("src/deep")).unwrap();
        for n in 0..20 {
            fs::write(at.join(format!("src/deep/f{n}")), format!("{n}\n")).unwrap();
        }
    };
    let Some(mut watched) = watched(what, Kind::Ext4, filled) else {
        return;
    };
    let root = watched.at.to_str().unwrap().to_owned();
    let log = watched.stage.path().join("strace.log");
    let script = format!(
        "cp -r {root}/src {root}/copy; tar -C / -cf {root}/all.tar {root}/copy; \
         gzip -k {root}/all.tar; mv {root}/all.tar.gz {root}/final.gz; \
         ln {root}/final.gz {root}/linked.gz; rm -r {root}/copy; mkdir {root}/empty; \
         rmdir {root}/empty; truncate -s 3 {root}/all.tar; mkfifo {root}/pipe"
    );
    let calls = "trace=open,openat,creat,rename,renameat,renameat2,mkdir,mkdirat,mknod,mknodat,\
        unlink,unlinkat,rmdir,link,linkat";
    let status = Command::new("strace")
        .args(["-f", "-qq", "-s", "4096", "-e", calls, "-o"])
        .arg(&log)
        .args(["sh", "-ec", &script])
        .status()
        .unwrap();
    assert!(status.success());
    watched.end();
    let expected = traced(&fs::read_to_string(&log).unwrap(), &root);
    assert!(expected.contains("final.gz") && expected.contains("src/deep/f19"));
    let found: BTreeSet<String> = watched
        .paths(&["files", "--json", "--all"])
        .into_iter()
        .collect();
    let missing: Vec<&String> = expected.difference(&found).collect();
    assert_eq!(missing, Vec::<&String>::new());
}
