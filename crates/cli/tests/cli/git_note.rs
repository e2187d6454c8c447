//! Notes of git name the runs that made the files of a commit.

use super::Place;

/// A repository in which a run made `made.txt` and `edited.txt`.
fn repository() -> Option<(Place, String)> {
    if !backstory_testkit::need::needs("notes of git", &["git"]) {
        return None;
    }
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.git(&["config", "user.name", "Test"]);
    place.git(&["config", "user.email", "test@example.org"]);
    place.write("source.txt", "2\n1\n");
    let run = place.keep("sort source.txt > made.txt; cp source.txt edited.txt", &[]);
    place.write("edited.txt", "by hand\n");
    place.git(&["add", "source.txt", "made.txt", "edited.txt"]);
    Some((place, run))
}

#[test]
fn a_note_names_the_run_that_wrote_the_committed_content() {
    let Some((place, run)) = repository() else {
        return;
    };
    place.git(&["commit", "-qm", "First"]);
    let dry = place.run(&["git-note", "--dry-run"]);
    assert_eq!(dry.status, 0, "{}", dry.err);
    assert!(
        !place
            .git(&["log", "--notes=backstory"])
            .contains("backstory: recorded")
    );
    let told = place.run(&["git-note"]);
    assert_eq!((told.status, &told.out), (0, &dry.out), "{}", told.err);
    let log = place.git(&["log", "--notes=backstory"]);
    assert!(log.contains("recorded runs made 1 of 3 files"), "{log}");
    assert!(
        log.contains(&format!("run {run}")) && log.contains("made.txt"),
        "{log}"
    );
    assert!(
        !log.contains("  edited.txt") && !log.contains("  source.txt"),
        "{log}"
    );
    // The second note takes the place of the first.
    assert_eq!(place.run(&["git-note", "HEAD", "--quiet"]).out, "");
    place
        .run(&["git-note", "no-such"])
        .is_error(1, &["no-such", "commit"]);
}

#[test]
fn an_installed_hook_notes_each_commit_and_an_earlier_hook_stays() {
    let Some((place, run)) = repository() else {
        return;
    };
    let installed = place.run(&["git-note", "--install"]);
    assert_eq!(installed.status, 0, "{}", installed.err);
    let hook = std::fs::read_to_string(place.path(".git/hooks/post-commit")).unwrap();
    let program = hook.replace(
        "backstory git-note",
        &format!("{} git-note", place.program()),
    );
    place.write(
        ".git/hooks/post-commit",
        &program.replace("command -v backstory", "true"),
    );
    place.keep("git commit -qm First", &[]);
    let log = place.git(&["log", "--notes=backstory"]);
    assert!(log.contains(&format!("run {run}")), "{log}");
    assert_eq!(place.run(&["git-note", "--install"]).status, 0);
    place.write(".git/hooks/post-commit", "#!/bin/sh\nexit 0\n");
    place
        .run(&["git-note", "--install"])
        .is_error(2, &["post-commit", "backstory git-note --quiet"]);
}
