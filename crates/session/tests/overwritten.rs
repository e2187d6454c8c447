//! A version that was read is preserved even if its reader has it open for writing. A content that
//! loses one of two names is not copied before the other goes, too.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use super::harness;

use harness::kept::{kept, kept_of};
use harness::{Run, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A content of more than 16 MB that exists before the run.
fn long() -> Vec<u8> {
    (0..2_600_000_u32)
        .flat_map(|n| format!("{n:07}\n").into_bytes())
        .collect()
}

/// Asserts that exactly these contents of `data`, which exists before the run, are preserved.
#[track_caller]
fn keeps(content: &[u8], words: &[&str], expected: &[&[u8]]) {
    let run = Run::new(&["--contents", "lazy"]);
    fs::write(run.path("data"), content).unwrap();
    let output = run.record(words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        text(&output.stderr)
    );
    let of_it = kept(&run).into_iter().filter(|k| k.path.ends_with("data"));
    // Records about contents that need not be preserved, because no process had read them yet, are
    // skipped.
    let mut bytes: Vec<_> = of_it.filter_map(|k| k.bytes.ok()).collect();
    // The open and the write may both notify before either is answered.
    bytes.dedup();
    assert!(
        bytes.iter().map(|b| &b[..]).eq(expected.iter().copied()),
        "{words:?}: {:?}",
        bytes
            .iter()
            .map(|b| text(&b[..b.len().min(40)]))
            .collect::<Vec<_>>()
    );
    run.assert_tidy();
}

#[test]
fn a_file_that_sort_reads_and_writes_at_once_is_preserved() {
    let short = b"b\na\nc\n";
    keeps(short, &["sort", "-o", "data", "data"], &[short]);
    let long = long();
    keeps(&long, &["sort", "-r", "-o", "data", "data"], &[&long]);
    // Made by another program of the run, and seen by no other.
    let mut made = kept_of(
        "made",
        &["sh", "-c", "printf '2\\n1\\n' > made; sort -o made made"],
    );
    made.dedup(); // as above
    assert_eq!(made, ["2\n1\n"]);
}

#[test]
fn a_version_read_through_another_descriptor_before_the_first_write_is_preserved() {
    if !backstory_testkit::need::needs("contents changed from Python", &["python3"]) {
        return;
    }
    let long = long();
    let open = "import os,mmap\nd=os.open('data',os.O_WRONLY)\nopen('data').read(10)\n";
    let ways = [
        "os.write(d,b'XX')",
        "os.pwrite(d,b'XX',5)",
        "os.ftruncate(d,7)",
        "os.writev(d,[b'X'])",
        "os.posix_fallocate(d,0,30000000)\nos.pwrite(d,b'X',3)",
        "s=open('other','w+'); s.write('other'); s.flush()\nos.sendfile(d,s.fileno(),0,5)",
        "os.dup2(d,1)\nprint('XX',flush=True)",
        "os.fdopen(d,'w').write('XX')",
        "e=os.dup(d)\nos.close(d)\nos.write(e,b'XX')",
    ];
    for way in ways {
        keeps(&long, &["python3", "-c", &format!("{open}{way}")], &[&long]);
    }
    // Read and written through one descriptor, and through a stream that reads and writes.
    let one = "d=open('data','r+b'); s=d.read(); d.seek(0); d.write(s[::-1])";
    keeps(&long, &["python3", "-c", one], &[&long]);
}

#[test]
fn an_appended_file_is_not_copied_at_the_first_write_either() {
    let run = Run::new(&["--contents", "lazy"]);
    fs::write(run.path("data"), long()).unwrap();
    run.shell("for i in 1 2 3; do echo $i >> data; done");
    assert!(kept(&run).iter().all(|k| k.bytes == Err(libc::EFBIG)));
}

/// Runs this script over 20 files in `a`, with a copy of each that no process touches. Returns the
/// contents that exist at the end or were preserved.
fn contents_left(script: &str) -> (usize, BTreeSet<String>, BTreeSet<String>) {
    let run = Run::new(&["--contents", "lazy"]);
    fs::create_dir(run.path("a")).unwrap();
    let mut expected = BTreeSet::new();
    for n in 0..20 {
        let content = format!("content {n} of {}\n", run.id);
        fs::write(run.path(&format!("a/{n}")), &content).unwrap();
        expected.insert(content);
    }
    let output = run.shell(script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = kept(&run);
    let count = kept.len();
    let mut there: BTreeSet<String> = kept.into_iter().map(|k| text(&k.bytes.unwrap())).collect();
    collect(run.dir.path(), &mut there);
    (count, expected, there)
}

fn collect(directory: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.insert(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

/// Asserts that no content is lost, and that this many had to be preserved.
#[track_caller]
fn keeps_so_many(script: &str, many: usize) {
    let (kept, expected, there) = contents_left(script);
    assert!(expected.is_subset(&there), "{script}: {there:?}");
    assert_eq!(kept, many, "{script}");
}

#[test]
fn a_file_that_keeps_a_known_name_is_not_copied() {
    keeps_so_many("cp -al a b; cat b/* >/dev/null; rm -r b", 0);
    keeps_so_many("cp -al a b; cat a/* >/dev/null; rm -r b", 0);
    keeps_so_many(
        "mkdir b; cd b; for i in $(seq 0 19); do ln ../a/$i x$i; done; cat * >/dev/null; rm -f *",
        0,
    );
}

#[test]
fn a_file_that_loses_its_last_name_later_is_preserved_then() {
    keeps_so_many("cp -al a b; cat b/* >/dev/null; rm -r b; rm -r a", 20);
    keeps_so_many(
        "cp -al a b; cat b/* >/dev/null; rm -r a & rm -r b; wait",
        20,
    );
    keeps_so_many(
        "cp -al a b; cat b/* >/dev/null; rm -r b; for f in a/*; do echo > $f; done",
        20,
    );
    keeps_so_many(
        "cp -al a b; cat b/* >/dev/null; rm -r b; echo > n; for f in a/*; do cp n m; mv m $f; done",
        20,
    );
    keeps_so_many(
        "cp -al a b; cat b/* >/dev/null; rm -r b; mv a/3 moved; rm moved",
        1,
    );
}

/// The remover looks into the directory first, and the directory is gone when it is examined.
#[test]
fn a_directory_that_is_gone_does_not_make_everything_worth_keeping() {
    let run = Run::new(&["--contents", "lazy"]);
    let made = "mkdir made; for d in 1 2 3; do mkdir made/$d; for f in 1 2 3; do echo $f > made/$d/$f; done; done";
    run.shell(&format!(
        "{made}; cat made/3/1; rm -r made; echo 1 > x; rm x"
    ));
    let kept: Vec<_> = kept(&run)
        .into_iter()
        .map(|k| text(&k.bytes.unwrap()))
        .collect();
    assert_eq!(kept, ["1\n"]);
}

#[test]
fn a_file_with_an_unknown_second_name_is_copied() {
    let (run, script) = (
        Run::new(&["--contents", "lazy"]),
        "cat data >/dev/null; rm data",
    );
    fs::write(run.path("data"), "content").unwrap();
    fs::hard_link(run.path("data"), run.path("second")).unwrap();
    run.shell(script);
    let kept: Vec<_> = kept(&run)
        .into_iter()
        .map(|k| text(&k.bytes.unwrap()))
        .collect();
    assert_eq!(kept, ["content"]);
}
