//! The notations of a file: `PATH@RUN`, `PATH@{DATE}`, digests, equal content.

use std::fs;
use std::process::Command;

use backstory_testkit::need::needs;

use super::Place;

#[test]
fn a_version_is_named_by_its_run_or_by_a_moment() {
    let place = Place::new();
    let first = place.keep("echo one > notes", &[]);
    let second = place.keep("echo two > notes", &[]);
    let contents = |what: &str| place.run(&["contents", what]).out;
    assert_eq!(contents(&format!("notes@{first}")), "one\n");
    assert_eq!(contents(&format!("notes@{second}")), "two\n");
    assert_eq!(contents("notes@{now}"), "two\n");
    let events = place.json(&["log", "--json", "--", "notes"]);
    let made = events[1]["time"].as_f64().unwrap();
    let shortly_after = format!("notes@{{@{:.3}}}", made + 0.002);
    assert_eq!(contents(&shortly_after), "one\n");
    let early = place.run(&["contents", "notes@{2 days ago}"]);
    early.is_error(1, &["notes", "backstory log -- notes"]);
    place
        .run(&["contents", "notes@{soon}"])
        .is_error(2, &["soon", "2 days ago"]);
    let of = place.json(&["of", &format!("notes@{first}"), "--json"]);
    assert_eq!(of["nodes"][0]["run"], first.as_str());
}

#[test]
fn a_file_with_an_at_sign_in_its_name_is_found_by_its_name() {
    let place = Place::new();
    place.keep(
        "echo literal > notes@old; echo other > notes",
        &["--name", "old"],
    );
    assert_eq!(place.run(&["contents", "notes@old"]).out, "literal\n");
    fs::remove_file(place.path("notes@old")).unwrap();
    assert_eq!(place.run(&["contents", "notes@old"]).out, "literal\n");
    place
        .run(&["contents", "notes@older"])
        .is_error(1, &["older"]);
}

#[test]
fn a_content_is_found_by_either_digest_or_its_beginning() {
    if !needs("the SHA-256 digest of a file", &["sha256sum"]) {
        return;
    }
    let place = Place::new();
    place.keep("seq 1 100 > numbers", &[]);
    let sum = Command::new("sha256sum")
        .arg(place.path("numbers"))
        .output()
        .unwrap();
    let sha256 = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    let of = place.json(&["of", "numbers", "--json"]);
    let blake3 = of["nodes"][0]["digest"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(place.path("numbers")).unwrap();
    for digest in [
        &sha256,
        &sha256[..12],
        &format!("sha256:{}", &sha256[..4]),
        &blake3,
        &blake3[..8],
        &blake3.to_uppercase(),
    ] {
        assert_eq!(place.run(&["contents", digest]).out, text, "{digest}");
        let of = place.run(&["of", digest]);
        assert!(
            of.status == 0 && of.out.contains("seq 1 100"),
            "{digest}: {of:?}"
        );
        assert!(of.err.contains("is that of"), "{digest}: {of:?}");
    }
    place.run(&["of", &"0".repeat(64)]).is_error(1, &["digest"]);
    place.run(&["of", "0123456"]).is_error(1, &["0123456"]);
}

#[test]
fn a_file_that_no_run_has_seen_is_found_by_its_content() {
    let place = Place::new();
    place.keep("seq 1 100 > numbers; wc -l < numbers > count", &[]);
    let text = fs::read_to_string(place.path("numbers")).unwrap();
    place.write("elsewhere", &text);
    let of = place.run(&["of", "elsewhere"]);
    assert!(of.status == 0 && of.out.contains("seq 1 100"), "{of:?}");
    assert!(of.err.contains("no run has seen elsewhere"), "{of:?}");
    assert!(of.err.contains("the same content as"), "{of:?}");
    let uses = place.run(&["uses", "elsewhere"]);
    assert!(uses.status == 0 && uses.out.contains("count"), "{uses:?}");
    place.write("elsewhere", "new\n");
    place.run(&["of", "elsewhere"]).is_error(1, &["elsewhere"]);
}

/// The contents of packages' files are not stored, but their files are there.
#[test]
fn a_packages_file_is_found_by_its_sha_256_digest() {
    if !needs("a package's file", &["dpkg", "sha256sum"]) {
        return;
    }
    let place = Place::new();
    place.keep("base64 /usr/share/common-licenses/BSD > out", &[]);
    let sum = Command::new("sha256sum")
        .arg("/usr/share/common-licenses/BSD")
        .output()
        .unwrap();
    let sha256 = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    for digest in [sha256.clone(), format!("sha256:{}", &sha256[..12])] {
        let uses = place.run(&["uses", &digest]);
        assert!(
            uses.err.contains("/usr/share/common-licenses/BSD") && uses.out.contains("base64"),
            "{uses:?}"
        );
    }
}

#[test]
fn a_git_commit_leads_to_the_command_that_made_it_its_files_and_its_parent() {
    if !needs("commits as subjects", &["git"]) {
        return;
    }
    let place = Place::new();
    let git = "git -c user.name=t -c user.email=t@example.org";
    place.keep("git init -q -b main repo", &[]);
    let commit = |text: &str| {
        let line =
            format!("echo {text} > repo/{text}; cd repo; git add . && {git} commit -qm {text}");
        place.keep(&line, &[]);
        let head = Command::new("git")
            .args(["-c", "safe.directory=*", "rev-parse", "HEAD"])
            .current_dir(place.path("repo"))
            .output()
            .unwrap();
        String::from_utf8(head.stdout).unwrap().trim().to_owned()
    };
    let (first, second) = (commit("one"), commit("two"));
    for wanted in [format!("commit:{second}"), format!("git:{}", &second[..10])] {
        let of = place.run(&["of", &wanted]);
        assert_eq!(of.status, 0, "{of:?}");
        assert!(
            of.err.contains(&format!("the commit {second} is")),
            "{of:?}"
        );
        assert!(of.out.contains("commit -qm two"), "{of:?}");
    }
    // The lineage has the parent's object, and the file of the parent.
    let of = place.run(&["of", &format!("commit:{second}"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&of.out).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let has = |end: &str| {
        let paths = nodes.iter().filter_map(|node| node["path"].as_str());
        paths.into_iter().any(|path| path.ends_with(end))
    };
    assert!(
        has(&format!("objects/{}/{}", &first[..2], &first[2..])),
        "{json}"
    );
    assert!(has("repo/two"), "{json}");
    // The work tree is known from the runs, so the question may be asked elsewhere.
    fs::rename(place.path("repo"), place.path("away")).unwrap();
    let of = place.run(&["of", &format!("commit:{first}")]);
    assert!(of.out.contains("commit -qm one"), "{of:?}");
    let unknown = place.run(&["of", "commit:0123456789"]);
    unknown.is_error(1, &["0123456789", "pack"]);
}

#[test]
fn a_git_commit_that_came_in_a_pack_leads_to_the_command_that_brought_it() {
    let place = Place::new();
    if !needs("commits in packs", &["git"]) || !place.has_inspector() {
        return;
    }
    let git = "git -c user.name=t -c user.email=t@example.org";
    let shell = |line: &str| {
        let mut made = place.stage.command("sh");
        made.args(["-ec", line]).current_dir(place.path("."));
        let output = made.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let commit = |text: &str| {
        shell(&format!(
            "cd origin; echo {text} > {text}; git add .; {git} commit -qm {text}; git rev-parse HEAD"
        ))
    };
    shell("git init -q -b main origin");
    let first = commit("one");
    let by_pack = "git -c fetch.unpackLimit=1 -c protocol.file.allow=always";
    let url = format!("file://{}", place.path("origin"));
    place.keep(
        &format!("{by_pack} clone -q {url} copy"),
        &["--contents=lazy"],
    );
    let second = commit("two");
    place.keep(
        &format!("cd copy && {by_pack} fetch -q"),
        &["--contents=lazy"],
    );
    for (hash, verb) in [
        (&first[..], "clone -q"),
        (&second, "fetch -q"),
        (&second[..12], "fetch -q"),
    ] {
        let of = place.run(&["of", &format!("commit:{hash}")]);
        assert_eq!(of.status, 0, "{of:?}");
        assert!(of.err.contains("is a part of"), "{of:?}");
        assert!(of.out.contains(verb), "{of:?}");
    }
    // git packs anew, unrecorded. The stored indexes still know the commits.
    shell("cd copy; git -c safe.directory=* gc -q --prune=now");
    let of = place.run(&["of", &format!("commit:{second}")]);
    assert!(of.out.contains("fetch -q"), "{of:?}");
    place
        .run(&["of", "commit:0123456789"])
        .is_error(1, &["0123456789"]);
}

#[test]
fn an_index_of_a_pack_that_is_not_read_is_named() {
    let place = Place::new();
    let packs = place.path("repo/.git/objects/pack");
    fs::create_dir_all(&packs).unwrap();
    let large = fs::File::create(format!("{packs}/pack-1.idx")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    place.keep("head -c 8 repo/.git/objects/pack/pack-1.idx > begin", &[]);
    place
        .run(&["of", "commit:0123456789"])
        .is_error(1, &["0123456789", "pack-1.idx", "more than 64 MiB"]);
}

#[test]
fn a_member_of_an_archive_leads_to_the_file_that_was_packed_and_to_its_uses() {
    let place = Place::new();
    if !needs("archives", &["tar", "gzip"]) || !place.has_inspector() {
        return;
    }
    place.keep("mkdir src out; seq 1 100 > src/numbers", &[]);
    place.keep("seq 1 50 > src/others", &[]);
    for (archive, pack, run) in [
        ("data.tar", "-cf", "packed"),
        ("data.tar.gz", "-czf", "smaller"),
    ] {
        place.keep(&format!("tar {pack} {archive} ./src"), &["--name", run]);
        let of = place.run(&["of", &format!("{archive}/src/numbers")]);
        assert!(of.status == 0 && of.out.contains("seq 1 100"), "{of:?}");
        assert!(of.err.contains("src/numbers"), "{of:?}");
        assert!(of.err.contains("sources of the archive"), "{of:?}");
        // The other member came from another step.
        assert!(!of.out.contains("seq 1 50"), "{of:?}");
        let of = place.run(&["of", &format!("{archive}/src/nothing")]);
        of.is_error(1, &[archive, "no member `src/nothing`"]);
    }
    // Within one run, the file is the one that this run read.
    let only = ["--run", "packed"];
    let of = place.run(&[&["of", "data.tar/src/numbers"], &only[..]].concat());
    assert!(of.err.contains("sources of the archive"), "{of:?}");
    let file = place.run(&[&["of", "src/numbers"], &only[..]].concat());
    assert_eq!((of.status, of.out), (file.status, file.out));
    place.keep("tar -xzf data.tar.gz -C out", &[]);
    place.keep("wc -l < out/src/numbers > count", &[]);
    let uses = place.run(&["uses", "data.tar.gz/src/numbers"]);
    assert!(uses.status == 0 && uses.out.contains("count"), "{uses:?}");
}

#[test]
fn a_member_of_an_archive_that_no_run_has_seen_is_found_by_its_content() {
    let place = Place::new();
    if !needs("archives", &["tar"]) || !place.has_inspector() {
        return;
    }
    place.keep("mkdir src; seq 1 100 > src/numbers", &[]);
    place.write("src/unknown", "of no run\n");
    let mut tar = place.stage.command("tar");
    tar.args(["-cf", "elsewhere.tar", "src"]);
    assert!(tar.current_dir(place.work()).status().unwrap().success());
    let of = place.run(&["of", "elsewhere.tar/src/numbers"]);
    assert!(of.status == 0 && of.out.contains("seq 1 100"), "{of:?}");
    assert!(of.err.contains("the same content as"), "{of:?}");
    place
        .run(&["of", "elsewhere.tar/src/unknown"])
        .is_error(1, &["src/unknown", "no recorded file has the content"]);
    place
        .run(&["of", "elsewhere.tar/src"])
        .is_error(1, &["src", "directory"]);
    let large = fs::File::create(place.path("large.tar")).unwrap();
    large.set_len(65 << 20).unwrap();
    place
        .run(&["of", "large.tar/src"])
        .is_error(1, &["large.tar", "more than 64 MiB"]);
    // A file that is no archive has no members.
    place
        .run(&["of", "src/numbers/1"])
        .is_error(1, &["src/numbers/1"]);
}

#[test]
fn the_error_of_a_damaged_archive_reorders_no_text_on_a_terminal() {
    let place = Place::new();
    if !needs("archives", &["tar"]) || !place.has_inspector() {
        return;
    }
    place.record("true");
    // The error names the member, as the archive does.
    let name = "\u{202e}member";
    place.write(name, "x\n");
    let mut tar = place.stage.command("tar");
    tar.args(["-cf", "damaged.tar", name]);
    assert!(tar.current_dir(place.work()).status().unwrap().success());
    let mut bytes = fs::read(place.path("damaged.tar")).unwrap();
    bytes[148..156].copy_from_slice(b"zzzzzzzz");
    fs::write(place.path("damaged.tar"), bytes).unwrap();
    let of = place.run(&["of", "damaged.tar/x"]);
    of.is_error(1, &["damaged.tar", "cksum", "member"]);
    assert!(!of.err.contains('\u{202e}'), "{of:?}");
}
