//! Runs and contents that are removed from a store with seals leave notes.

use std::fs;
use std::process::Stdio;

use backstory_testkit::need::needs;
use serde_json::Value;

use super::{copy, faults, flip, sealed};
use crate::{Answer, Place};

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
fn a_damaged_chain_refuses_removals_and_names_the_remedy() {
    let Some((place, [first, second], ..)) = sealed() else {
        return;
    };
    let (one, two) = (place.seal_file(1, "seal"), place.seal_file(2, "seal"));
    let damages: [(&str, &dyn Fn()); 5] = [
        ("a seal in the middle", &|| fs::write(&one, "x").unwrap()),
        ("a seal that is missing before others", &|| {
            fs::remove_file(&one).unwrap()
        }),
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
