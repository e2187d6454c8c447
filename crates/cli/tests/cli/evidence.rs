//! Runs that are sealed in a chain: every later change of a byte is found, and named.

mod changed_seals;
mod documents;
mod kinds;
mod removals;
mod rows;
mod signatures;

use std::fs;
use std::path::{Path, PathBuf};

use backstory_testkit::need::needs;
use backstory_testkit::ssh_server::make_key;
use rusqlite::Connection;
use serde_json::Value;

use super::{Answer, Place};

impl Place {
    /// A key of the stage's user in `work`, and a file of allowed signers with it.
    pub(super) fn signer(&self, name: &str) -> (String, String) {
        make_key(self.path(name).as_ref()).unwrap();
        self.stage.user().owns(self.path(name).as_ref()).unwrap();
        let public = fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        let allowed = format!("{name}.allowed");
        self.write(&allowed, &format!("{name}@example.org {public}"));
        (self.path(name), self.path(&allowed))
    }

    /// `store verify --evidence ARGS`, and its report.
    fn verified(&self, args: &[&str]) -> (i32, Value) {
        let all = [&["store", "verify", "--evidence", "--json"], args].concat();
        let answer = self.run(&all);
        let report = serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{answer:?}"));
        (answer.status, report)
    }

    /// The configuration of the stage's user.
    fn configure(&self, text: &str) {
        let directory = self.stage.directory("home/.config/backstory").unwrap();
        let path = directory.join("config.toml");
        fs::write(&path, text).unwrap();
        self.stage.user().owns(&path).unwrap();
    }

    fn evidence(&self) -> PathBuf {
        self.stage.store().join("evidence")
    }

    /// The file of the chain with this number and extension.
    pub(super) fn seal_file(&self, number: u64, extension: &str) -> PathBuf {
        let begin = format!("{number:06}-");
        let entries = fs::read_dir(self.evidence()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&begin) && name.ends_with(&format!(".{extension}"))
        };
        paths.find(is_it).unwrap()
    }

    /// Changes the store, verifies, and restores it. Returns the faults as `RUN PART`.
    fn faults_after(&self, args: &[&str], change: &mut dyn FnMut(&Path)) -> Vec<String> {
        let (store, kept) = (self.stage.store(), self.work().join("..kept"));
        self.quiet();
        copy(&store, &kept);
        change(&store);
        let (status, report) = self.verified(args);
        fs::remove_dir_all(&store).unwrap();
        copy(&kept, &store);
        fs::remove_dir_all(&kept).unwrap();
        let faults = faults(&report);
        assert_eq!(status, i32::from(!faults.is_empty()), "{report}");
        faults
    }
}

/// The faults of a report, as `RUN PART`.
fn faults(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let faults = findings.filter(|finding| finding["weight"] == "fault");
    faults
        .map(|finding| {
            let run = finding["run"].as_str().unwrap_or("-");
            format!("{run} {}", finding["part"].as_str().unwrap())
        })
        .collect()
}

/// Copies a directory with owners and times.
fn copy(from: &Path, to: &Path) {
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-a").args([from, to]).status().unwrap().success());
}

/// Changes one bit in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Two sealed runs of which the second read what the first made, and the key.
fn sealed() -> Option<(Place, [String; 2], String, String)> {
    if !needs("signed seals", &["ssh-keygen"]) {
        return None;
    }
    let place = Place::new();
    place.write_aged("in", &"some text of some length\n".repeat(20));
    let first = place.keep("sort in > one; ln one two", &["--contents=lazy", "--deep"]);
    let second = place.keep("cat one in > three", &["--contents=lazy", "--name=second"]);
    for run in [&first, &second] {
        assert_eq!(place.run(&["tag", run, "kind=evidence"]).status, 0);
    }
    let (key, allowed) = place.signer("ann");
    let sealed = place.run(&["store", "seal", "--all", "--key", &key]);
    assert!(sealed.out.starts_with("sealed 2 runs"), "{sealed:?}");
    Some((place, [first, second], key, allowed))
}

#[test]
fn a_changed_byte_of_each_file_is_found_and_the_run_and_part_named() {
    let Some((place, [first, second], _, allowed)) = sealed() else {
        return;
    };
    let signers = ["--signers", &allowed];
    let (status, report) = place.verified(&signers);
    assert_eq!((status, faults(&report)), (0, vec![]), "{report}");
    assert_eq!(report["intact"].as_array().unwrap().len(), 2, "{report}");
    let expect = |part: &str, change: &mut dyn FnMut(&Path)| {
        let found = place.faults_after(&signers, change);
        assert!(found.contains(&part.to_owned()), "{part}: {found:?}");
    };
    let of = |run: &str, part: &str| format!("{run} {part}");
    let in_runs = |name: String| move |store: &Path| flip(&store.join("runs").join(&name));
    expect(&of(&first, "log"), &mut in_runs(format!("{first}.log")));
    expect(&of(&first, "deep"), &mut in_runs(format!("{first}.deep")));
    let pack = &mut |store: &Path| {
        let packs = fs::read_dir(store.join("contents/packs")).unwrap();
        let mut packs = packs.map(|entry| entry.unwrap().path());
        let is_pack = |path: &PathBuf| path.extension().is_none_or(|end| end != "idx");
        flip(&packs.find(is_pack).unwrap());
    };
    let found = place.faults_after(&signers, pack);
    assert!(
        found.iter().any(|fault| fault.ends_with(" contents")),
        "{found:?}"
    );
    expect("- head", &mut |store| flip(&store.join("evidence/head")));
    for journal in ["facts.log", "annotations.log"] {
        let found = place.faults_after(&signers, &mut |store| flip(&store.join(journal)));
        assert!(!found.is_empty(), "{journal}");
    }
    expect(&of(&second, "facts"), &mut |store| {
        fs::write(store.join("facts.log"), "").unwrap();
    });
    expect(&of(&second, "directories"), &mut |store| {
        // The last frame of the journal has the directories of the second run.
        let path = store.join("facts.log");
        let mut bytes = fs::read(&path).unwrap();
        let last = memchr::memmem::rfind(&bytes, b"bf\0").unwrap_or(bytes.len() - 60);
        bytes.truncate(last);
        fs::write(&path, bytes).unwrap();
    });
    expect(&of(&second, "annotations"), &mut |store| {
        let path = store.join("annotations.log");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("evidence", "evidencf")).unwrap();
    });
}

#[test]
fn a_changed_removed_or_exchanged_seal_is_found() {
    let Some((place, [first, second], key, allowed)) = sealed() else {
        return;
    };
    let (other, _) = place.signer("eve");
    let head = fs::read_to_string(place.evidence().join("head")).unwrap();
    let expected = ["--signers", &allowed, "--expect", head.trim()];
    let own = |extension: &str, number| {
        let path = place.seal_file(number, extension);
        place.evidence().join(path.file_name().unwrap())
    };
    assert_eq!(
        place.faults_after(&expected, &mut |_| ()),
        Vec::<String>::new()
    );
    for extension in ["seal", "sig", "items"] {
        for (number, run) in [(1, &first), (2, &second)] {
            let path = own(extension, number);
            let changed = place.faults_after(&expected, &mut |_| flip(&path));
            let removed = place.faults_after(&expected, &mut |_| fs::remove_file(&path).unwrap());
            let names = |found: &[String]| {
                found
                    .iter()
                    .any(|fault| fault.starts_with(&**run) || fault == "- chain")
            };
            assert!(names(&changed), "{extension} {number}: {changed:?}");
            assert!(names(&removed), "{extension} {number}: {removed:?}");
        }
    }
    // The chain is cut, with its head.
    let cut = |with_head: bool| {
        place.faults_after(&expected, &mut |store| {
            for extension in ["seal", "sig", "items"] {
                fs::remove_file(own(extension, 2)).unwrap();
            }
            if with_head {
                let digest = format!("1:{}", digest_of_first(store));
                fs::write(store.join("evidence/head"), digest + "\n").unwrap();
            }
        })
    };
    assert!(cut(false).contains(&"- chain".to_owned()));
    assert!(
        cut(true).contains(&"- chain".to_owned()),
        "--expect finds a consistent cut"
    );
    // Two seals change places.
    let swapped = place.faults_after(&["--signers", &allowed], &mut |_| {
        for extension in ["seal", "sig", "items"] {
            let (one, two) = (own(extension, 1), own(extension, 2));
            let (a, b) = (fs::read(&one).unwrap(), fs::read(&two).unwrap());
            fs::write(&one, b).unwrap();
            fs::write(&two, a).unwrap();
        }
    });
    assert!(
        swapped.iter().any(|fault| fault.ends_with(" order")),
        "{swapped:?}"
    );
    // Another key signs the whole chain anew.
    let forged = place.faults_after(&["--signers", &allowed], &mut |store| {
        fs::remove_dir_all(store.join("evidence")).unwrap();
        assert_eq!(
            place
                .run(&["store", "seal", "--all", "--key", &other])
                .status,
            0
        );
    });
    assert!(forged.contains(&format!("{first} signature")), "{forged:?}");
    let unsigned = place.faults_after(&["--signers", &allowed], &mut |store| {
        fs::remove_dir_all(store.join("evidence")).unwrap();
        assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    });
    assert!(
        unsigned.contains(&format!("{second} signature")),
        "{unsigned:?}"
    );
    // All seals are gone, with their head.
    let gone = &mut |store: &Path| fs::remove_dir_all(store.join("evidence")).unwrap();
    assert_eq!(place.faults_after(&expected[..2], gone), ["- chain"]);
    let at_end = place.faults_after(&expected[2..], gone);
    assert!(at_end.contains(&"- chain".to_owned()), "{at_end:?}");
    // ssh-keygen alone verifies a seal.
    let mut keygen = place.stage.command("ssh-keygen");
    keygen.args([
        "-Y",
        "verify",
        "-n",
        "backstory",
        "-I",
        "ann@example.org",
        "-f",
        &allowed,
    ]);
    keygen.arg("-s").arg(place.seal_file(1, "sig"));
    keygen.stdin(fs::File::open(place.seal_file(1, "seal")).unwrap());
    assert!(keygen.status().unwrap().success());
    drop(key);
}

/// The digest of the first seal, as the second one names it.
fn digest_of_first(store: &Path) -> String {
    let mut bytes = Vec::new();
    for extension in ["seal", "sig"] {
        let entries = fs::read_dir(store.join("evidence")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("000001-") && name.ends_with(extension)
        });
        bytes.extend(fs::read(path.unwrap()).unwrap());
    }
    blake3::hash(&bytes).to_string()
}

/// One bit in the middle of each block.
const BLOCK: &str = "block";

fn flip_blocks(database: &Connection, table: &str, key: &str, column: &str) {
    let mut select = database
        .prepare(&format!(
            "SELECT CAST({key} AS TEXT), {column} FROM {table}"
        ))
        .unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(String, Vec<u8>)> = rows.unwrap().map(Result::unwrap).collect();
    assert!(!rows.is_empty(), "{table} has no rows");
    for (id, mut block) in rows {
        let middle = block.len() / 2;
        block[middle] ^= 1;
        let update = format!("UPDATE {table} SET {column} = ?1 WHERE CAST({key} AS TEXT) = ?2");
        database.execute(&update, (block, id)).unwrap();
    }
}

#[test]
fn a_seal_with_a_huge_number_is_one_gap() {
    let Some((place, ..)) = sealed() else {
        return;
    };
    let found = place.faults_after(&[], &mut |store| {
        fs::write(store.join("evidence/999999999999-7hx2k9qa.seal"), "x").unwrap();
    });
    assert_eq!(found, ["- chain", "7hx2k9qa seal"]);
}

#[test]
fn a_run_is_sealed_at_its_end_if_the_configuration_says_so() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in > one", &["--contents=lazy"]);
    assert!(
        !place.evidence().exists(),
        "without configuration nothing is written"
    );
    let (key, allowed) = place.signer("ann");
    place.configure(&format!(
        "[evidence]\nkey = \"{key}\"\neach_run = true\nkeys = 1\n"
    ));
    place.keep("cat in > two", &["--contents=lazy"]);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!(status, 0, "{report}");
    assert_eq!(report["intact"].as_array().unwrap().len(), 2, "{report}");
    let told = place.run(&["store", "seal", "--all"]);
    assert!(
        told.err
            .contains("config.toml:4:8: unknown key evidence.keys"),
        "{told:?}"
    );
    assert!(told.out.contains("2 already sealed"), "{told:?}");
}

#[test]
fn what_changes_lawfully_after_a_seal_is_no_fault() {
    let Some((place, [first, second], _, allowed)) = sealed() else {
        return;
    };
    for command in [
        &["name", &first, "later"][..],
        &["note", &second, "a note"],
        &["tag", &first, "more=tags"],
        &["store", "gc"],
        &["store", "rebuild"],
    ] {
        assert_eq!(place.run(command).status, 0, "{command:?}");
    }
    // Another run learns more about the same files.
    place.keep("cat one two three > four", &["--contents=all"]);
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!((status, faults(&report)), (0, vec![]), "{report}");
    assert_eq!(
        report["not_sealed"].as_array().unwrap().len(),
        1,
        "{report}"
    );
}

#[test]
fn an_exported_document_carries_seals_that_prove_its_digests() {
    let Some((place, [first, _], _, allowed)) = sealed() else {
        return;
    };
    let (_, others) = place.signer("eve");
    for (format, file) in [
        ("in-toto", "a.json"),
        ("prov-json", "b.json"),
        ("ro-crate", "crate"),
    ] {
        let export = place.run(&["export", format, &first, "-o", file]);
        assert_eq!(export.status, 0, "{export:?}");
        let verify = |signers: &str| -> Answer {
            place.run(&["store", "verify", "--evidence", file, "--signers", signers])
        };
        let good = verify(&allowed);
        assert_eq!(good.status, 0, "{format}: {good:?}");
        assert!(good.out.contains("valid seals of 1 run cover"), "{good:?}");
        assert!(!good.out.contains(" 0 contents"), "{good:?}");
        let wrong = verify(&others);
        assert_eq!(wrong.status, 1, "{wrong:?}");
        assert!(wrong.out.contains("no allowed signer"), "{wrong:?}");
        if format == "ro-crate" {
            let below = place.work().join("crate/files");
            let copied = below.join(place.path("one").trim_start_matches('/'));
            fs::write(copied, "other text").unwrap();
        } else {
            let text = fs::read_to_string(place.path(file)).unwrap();
            let at = text
                .find("blake3\":\"")
                .or(text.find("blake3\": \""))
                .unwrap()
                + 12;
            let digit = if &text[at..=at] == "0" { "1" } else { "0" };
            fs::write(
                place.path(file),
                format!("{}{digit}{}", &text[..at], &text[at + 1..]),
            )
            .unwrap();
        }
        let changed = verify(&allowed);
        assert_eq!(changed.status, 1, "{format}: {changed:?}");
        assert!(
            changed.out.contains("no valid seal covers it"),
            "{format}: {changed:?}"
        );
    }
    place.write("plain.json", "{}");
    place
        .run(&["store", "verify", "--evidence", "plain.json"])
        .is_error(1, &["plain.json", "carries no seal"]);
}
