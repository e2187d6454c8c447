//! Runs that are sealed in a chain: every later change of a byte is found, and named.

mod kinds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

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

/// Tables, each with the SQL that changes one value of a row about the two runs.
const CHANGES: [(&str, &str); 17] = [
    (
        "runs",
        "UPDATE runs SET header = replace(header, '\"uid\":', '\"uid\":1')",
    ),
    (
        "runs",
        "UPDATE runs SET end = replace(end, '\"exit\":0', '\"exit\":1')",
    ),
    ("runs", "UPDATE runs SET note = 'x'"),
    ("runs", "DELETE FROM runs"),
    ("texts", BLOCK),
    ("directories", BLOCK),
    ("paths", "UPDATE paths SET dir = dir + 1000"),
    ("versions", BLOCK),
    ("inodes", "UPDATE OR REPLACE inodes SET dir = dir + 1000"),
    ("members", BLOCK),
    ("touched", "DELETE FROM touched"),
    ("made", "DELETE FROM made"),
    ("activities", BLOCK),
    ("edge_lists", BLOCK),
    ("segments", BLOCK),
    ("annotations", "UPDATE annotations SET value = 'other'"),
    (
        "facts",
        "UPDATE facts SET content = content + 1 WHERE content IS NOT NULL",
    ),
];

/// One bit in the middle of each block.
const BLOCK: &str = "block";

#[test]
fn a_changed_row_of_each_table_is_found() {
    let Some((place, [first, second], ..)) = sealed() else {
        return;
    };
    for (table, change) in CHANGES {
        let found = place.faults_after(&[], &mut |store| {
            let database = Connection::open(store.join("graph.db")).unwrap();
            match change {
                BLOCK => flip_blocks(&database, table, "id", "block"),
                sql => database.execute_batch(sql).unwrap(),
            }
        });
        // A run whose row is gone is indexed again from its sealed log.
        let named = found
            .iter()
            .any(|fault| fault.starts_with(&*first) || fault.starts_with(&*second));
        assert_eq!(
            named,
            change != "DELETE FROM runs",
            "{table}: {change}: {found:?}"
        );
    }
    for (table, key, column) in [
        ("facts", "id", "record"),
        ("directory_snapshots", "run", "record"),
    ] {
        let found = place.faults_after(&[], &mut |store| {
            let database = Connection::open(store.join("graph.db")).unwrap();
            flip_blocks(&database, table, key, column);
        });
        assert!(!found.is_empty(), "{table}");
    }
}

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
fn a_lawful_removal_leaves_its_note_and_a_secret_one_is_a_fault() {
    let Some((place, [first, second], key, allowed)) = sealed() else {
        return;
    };
    let gone = place.faults_after(&["--signers", &allowed], &mut |store| {
        let (evidence, aside) = (store.join("evidence"), place.work().join("..aside"));
        fs::rename(&evidence, &aside).unwrap();
        assert_eq!(place.run(&["rm", &first]).status, 0);
        fs::rename(&aside, &evidence).unwrap();
    });
    assert_eq!(gone, [format!("{first} run")]);
    place.configure(&format!("[evidence]\nkey = \"{key}\"\n"));
    let items = place.seal_file(1, "items");
    assert_eq!(place.run(&["rm", &first]).status, 0);
    assert!(
        !items.exists(),
        "the digests of the removed run's files are gone"
    );
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!(status, 0, "{report}");
    assert_eq!(report["findings"][0]["weight"], "removed", "{report}");
    assert_eq!(report["findings"][0]["run"], *first, "{report}");
    assert_eq!(report["intact"], serde_json::json!([second]), "{report}");
    // Without the key, the note is not signed. A later seal of the signer confirms it.
    place.configure("");
    assert_eq!(place.run(&["rm", &second]).status, 0);
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!(
        (status, faults(&report)),
        (1, vec![format!("{second} removal")])
    );
    place.keep("cat in > four", &["--contents=lazy"]);
    assert_eq!(
        place.run(&["store", "seal", "--all", "--key", &key]).status,
        0
    );
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!(status, 0, "{report}");
    assert!(report.to_string().contains("confirms it"), "{report}");
}

#[test]
fn a_content_that_forget_removed_leaves_a_note_for_each_run_that_had_it() {
    let Some((place, both, key, allowed)) = sealed() else {
        return;
    };
    place.configure(&format!("[evidence]\nkey = \"{key}\"\n"));
    // The text is in the contents alone, so that both runs stay.
    let answer = place.run(&["forget", "--matching", "text of some", "--yes"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!(status, 0, "{report}");
    let findings = report["findings"].as_array().unwrap();
    for run in &both {
        let is_note = |one: &&Value| {
            one["run"] == *run && one["weight"] == "removed" && one["part"] == "contents"
        };
        assert_eq!(findings.iter().filter(is_note).count(), 1, "{report}");
    }
    // Without the note, the same loss is a fault.
    let secret = place.faults_after(&[], &mut |_| {
        for number in [3, 4] {
            fs::remove_file(place.seal_file(number, "items")).unwrap();
        }
    });
    assert!(secret.contains(&format!("{} items", both[0])), "{secret:?}");
    assert!(secret.contains(&format!("{} facts", both[0])), "{secret:?}");
}

#[test]
fn contents_of_sealed_runs_go_last_for_the_budget_and_leave_a_note() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    for name in ["sealed", "other"] {
        // Bytes that zstd cannot make smaller.
        let mut bytes = vec![0; 300_000];
        let mut random = blake3::Hasher::new();
        random.update(name.as_bytes());
        random.finalize_xof().fill(&mut bytes);
        fs::write(place.path(name), bytes).unwrap();
        place.age(name);
    }
    let first = place.keep("cat sealed > /dev/null", &[]);
    let (key, allowed) = place.signer("ann");
    let seal = place.run(&["store", "seal", "--all", "--key", &key]);
    assert_eq!(seal.status, 0, "{seal:?}");
    place.keep("cat other > /dev/null", &[]);
    let limit = |most: &str| {
        let text = format!("[limits]\ncontents = \"{most}\"\n[evidence]\nkey = \"{key}\"\n");
        place.configure(&text);
        let answer = place.run(&["store", "gc", "--limits"]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
        place.verified(&["--signers", &allowed])
    };
    let (status, report) = limit("400k");
    assert_eq!((status, &report["findings"]), (0, &Value::Array(vec![])));
    assert_eq!(place.run(&["contents", "sealed"]).status, 0);
    assert_eq!(place.run(&["contents", "other"]).status, 1);
    let (status, report) = limit("100k");
    assert_eq!((status, faults(&report)), (0, vec![]), "{report}");
    let removed = &report["findings"][0];
    assert_eq!(removed["weight"], "removed", "{report}");
    assert_eq!(removed["run"], *first, "{report}");
    assert_eq!(removed["part"], "contents", "{report}");
    assert_eq!(place.run(&["contents", "sealed"]).status, 1);
    // Without the note, the same loss is a fault.
    let items = place.seal_file(2, "items");
    let secret = place.faults_after(&[], &mut |_| fs::remove_file(&items).unwrap());
    assert!(secret.contains(&format!("{first} contents")), "{secret:?}");
}

#[test]
fn a_forged_note_about_a_removal_hides_no_changed_log() {
    let Some((place, [first, _], key, allowed)) = sealed() else {
        return;
    };
    let head = fs::read_to_string(place.evidence().join("head")).unwrap();
    let before = head.trim().split_once(':').unwrap().1.to_owned();
    let forged = place.faults_after(&["--signers", &allowed], &mut |store| {
        flip(&store.join("runs").join(format!("{first}.log")));
        let note = format!(
            "backstory seal 1\nnumber 3\nbefore {before}\nat 1\nremoved {first}\nkey none\ntsa none\n"
        );
        let path = store.join(format!("evidence/000003-{first}.seal"));
        fs::write(&path, &note).unwrap();
        place.stage.user().owns(&path).unwrap();
        let head = format!("3:{}\n", blake3::hash(note.as_bytes()));
        fs::write(store.join("evidence/head"), head).unwrap();
        // The signer takes the run for one that is not sealed.
        let seal = place.run(&["store", "seal", "--all", "--key", &key]);
        assert!(seal.out.starts_with("sealed 1 run"), "{seal:?}");
    });
    assert!(forged.contains(&format!("{first} log")), "{forged:?}");
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
fn a_damaged_chain_refuses_removals_and_names_the_remedy() {
    let Some((place, [first, second], ..)) = sealed() else {
        return;
    };
    let (one, two) = (place.seal_file(1, "seal"), place.seal_file(2, "seal"));
    let damages: [(&str, &dyn Fn()); 4] = [
        ("a seal in the middle", &|| fs::write(&one, "x").unwrap()),
        ("the last seal", &|| fs::write(&two, "x").unwrap()),
        ("the end", &|| fs::remove_file(&two).unwrap()),
        ("the head", &|| {
            fs::write(place.evidence().join("head"), "x").unwrap()
        }),
    ];
    let forget = ["forget", &place.path("three"), "--yes"];
    let kept = place.work().join("..evidence");
    copy(&place.evidence(), &kept);
    for (what, damage) in damages {
        damage();
        for removal in [
            &["rm", &first][..],
            &forget,
            &["store", "gc", "--max-size", "1"],
        ] {
            let directory = place.evidence().display().to_string();
            place.run(removal).is_error(
                1,
                &[
                    &directory,
                    "the chain of seals is damaged",
                    "`backstory store verify --evidence` says more",
                    "move the directory away",
                ],
            );
            assert_eq!(place.runs().len(), 2, "{what}: {removal:?}");
        }
        fs::remove_dir_all(place.evidence()).unwrap();
        copy(&kept, &place.evidence());
    }
    assert_eq!(place.verified(&[]).0, 0, "nothing else was removed");
    fs::write(&one, "x").unwrap();
    fs::rename(place.evidence(), place.work().join("..moved")).unwrap();
    for removal in [&["rm", &first][..], &forget] {
        assert_eq!(place.run(removal).status, 0, "the remedy helps");
    }
    assert!(!place.runs().contains(&second));
}

/// Starts commands at once. Each must succeed.
fn at_once(place: &Place, commands: &[&[&str]]) {
    let start = |args: &&[&str]| {
        let mut command = place.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = commands.iter().map(start).collect();
    for (command, child) in commands.iter().zip(running) {
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.status, 0, "{command:?}: {answer:?}");
    }
}

#[test]
fn seals_and_removals_at_the_same_time_leave_a_chain_that_verifies() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    for (round, removal) in ["rm", "forget", "gc", "rm", "forget", "gc"]
        .iter()
        .enumerate()
    {
        let lines: Vec<String> = (0..4).map(|n| format!("cat in > {round}-{n}")).collect();
        let runs: Vec<String> = lines
            .iter()
            .map(|line| place.keep(line, &["--contents=lazy"]))
            .collect();
        if round == 3 {
            // In the first rounds, the chain grows. In this one, a removal meets the first seal.
            fs::remove_dir_all(place.evidence()).unwrap();
        }
        let path = place.path(&format!("{round}-1"));
        let removals: Vec<Vec<&str>> = match *removal {
            "rm" => vec![vec!["rm", &runs[1]], vec!["rm", &runs[2]]],
            "forget" => vec![vec!["forget", &path, "--yes"]],
            _ => vec![vec!["store", "gc", "--max-size", "1"], vec!["store", "gc"]],
        };
        let mut commands: Vec<&[&str]> = vec![&["store", "seal", "--all"]];
        commands.extend(removals.iter().map(Vec::as_slice));
        commands.extend([
            &["store", "seal", "--all"][..],
            &["store", "verify", "--evidence"],
        ]);
        if round % 2 == 1 {
            commands.reverse();
        }
        at_once(&place, &commands);
        let (status, report) = place.verified(&[]);
        assert_eq!(
            (status, faults(&report)),
            (0, vec![]),
            "{removal}: {report}"
        );
        let mut intact: Vec<String> = serde_json::from_value(report["intact"].clone()).unwrap();
        intact.extend(serde_json::from_value::<Vec<String>>(report["not_sealed"].clone()).unwrap());
        let mut left = place.runs();
        left.sort_unstable();
        intact.sort_unstable();
        assert_eq!(intact, left, "{removal}: {report}");
    }
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
