//! `record --remote` with programs that copy files through ssh: scp, sftp, rsync, git.

use super::remote::TwoMachines;
use backstory_testkit::need::needs;
use std::fs;

const TEXT: &str = "a line of text that is long enough to be known by its content alone\n";

/// Each line copies `first` of the other machine, and then the copy to another name there.
fn both_directions(what: &str, program: &str, from: &str, to: &str) {
    if !needs(what, &[program]) {
        return;
    }
    let Some(both) = TwoMachines::installed(what) else {
        return;
    };
    both.write_far("origin", TEXT);
    let ssh = both.words("ssh");
    let (origin, first, third) = (both.far("origin"), both.far("first"), both.far("third"));
    both.keep(&format!("{ssh} box 'cp {origin} {first}'"));
    let line = |line: &str| {
        line.replace("SSH", &ssh)
            .replace("CONFIG", &both.config())
            .replace("FIRST", &first)
            .replace("THIRD", &third)
    };
    both.keep(&line(from));
    let second = both.here.path("second");
    assert_eq!(fs::read_to_string(&second).unwrap(), TEXT);
    let of = both.here.run(&["of", &second]);
    assert!(of.out.contains(&format!("cp {origin}")), "{of:?}");
    both.keep(&line(to));
    assert_eq!(fs::read_to_string(&third).unwrap(), TEXT);
    let of = both.here.run(&["of", &third]);
    assert!(of.out.contains(&format!("cp {origin}")), "{of:?}");
    let uses = both.here.run(&["uses", &origin]);
    assert!(uses.out.contains("second"), "{uses:?}");
}

#[test]
fn a_file_that_scp_copies_keeps_its_history_in_both_directions() {
    both_directions(
        "scp between recorded machines",
        "scp",
        "scp -q -F CONFIG box:FIRST second",
        "scp -q -F CONFIG second box:THIRD",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_file_that_scp_copies_by_its_old_protocol_keeps_its_history() {
    both_directions(
        "scp -O between recorded machines",
        "scp",
        "scp -O -q -F CONFIG box:FIRST second",
        "scp -O -q -F CONFIG second box:THIRD",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_file_that_sftp_copies_keeps_its_history_in_both_directions() {
    both_directions(
        "sftp between recorded machines",
        "sftp",
        "echo 'get FIRST second' | sftp -q -b - -F CONFIG box >/dev/null",
        "echo 'put second THIRD' | sftp -q -b - -F CONFIG box >/dev/null",
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_file_that_rsync_copies_keeps_its_history_in_both_directions() {
    both_directions(
        "rsync between recorded machines",
        "rsync",
        "rsync -t -e 'SSH' box:FIRST second",
        "rsync -t -e 'SSH' second box:THIRD",
    );
}

#[test]
fn a_clone_over_ssh_leads_to_the_commit_on_the_other_machine() {
    let what = "git between recorded machines";
    if !needs(what, &["git"]) {
        return;
    }
    let Some(both) = TwoMachines::installed(what) else {
        return;
    };
    let (ssh, repository) = (both.words("ssh"), both.far("repository"));
    let git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main";
    both.keep(&format!(
        "{ssh} box '{git} init -q {repository} && cd {repository} && echo \"{}\" > file && \
         {git} add file && {git} commit -qm one'",
        TEXT.trim()
    ));
    both.keep(&format!(
        "GIT_SSH_COMMAND='{ssh}' git clone -q box:{repository} clone"
    ));
    let of = both.here.run(&["of", &both.here.path("clone/file")]);
    assert!(of.out.contains("git clone"), "{of:?}");
    assert!(of.out.contains("commit -qm one"), "{of:?}");
    let line = format!(
        "cd clone && echo more >> file && {git} commit -qam two && \
         GIT_SSH_COMMAND='{ssh}' git push -q origin HEAD:other"
    );
    both.keep(&line);
    let heads = format!("{repository}/.git/refs/heads/other");
    let of = both.here.run(&["of", &heads]);
    for step in [
        "git-receive-pack",
        "commit -qam two",
        "git clone",
        "commit -qm one",
    ] {
        assert!(of.out.contains(step), "{step}: {of:?}");
    }
}
