//! Real programs do below a mount what they do elsewhere.

use std::process::Command;

use backstory_testkit::need::needs;

use crate::mount::mounted::mounted;
use crate::mount::operations::tree;

/// Runs a script in a mounted and in a plain directory, and compares output and trees.
fn same(what: &str, tools: &[&str], script: &str) {
    if !needs(what, tools) {
        return;
    }
    for options in [&[][..], &["--passthrough", "on"]] {
        let Some(mut mounted) = mounted(what, options) else {
            return;
        };
        let plain = mounted.stage.directory("plain").unwrap();
        let here = mounted.shell(script);
        let there = Command::new("sh")
            .args(["-ec", script])
            .current_dir(&plain)
            .output()
            .unwrap();
        assert!(there.status.success(), "{there:?}");
        assert_eq!(here, there, "{options:?}");
        assert_eq!(tree(&mounted.at), tree(&plain), "{options:?}");
        assert!(mounted.unmount().success());
        assert_eq!(tree(&mounted.behind), tree(&plain), "{options:?}");
    }
}

#[test]
fn cp_and_tar_copy_a_tree() {
    same(
        "cp and tar below a mount",
        &["tar"],
        "mkdir -p a/b; echo 1 > a/one; ln a/one a/b/hard; ln -s ../one a/b/soft
         truncate -s 1M a/sparse; printf x | dd of=a/sparse bs=1 seek=500000 conv=notrunc status=none
         chmod 4750 a/one; touch -h -d 2001-02-03 a/b/soft a/* a; cp -a a c; tar cf t.tar a; mkdir x; tar xf t.tar -C x
         rm t.tar; diff -r a c; diff -r a x/a; stat -c '%n %Y %a %h %s' c/* x/a/*",
    );
}

#[test]
fn git_commits_and_checks_out() {
    same(
        "git below a mount",
        &["git"],
        "export GIT_AUTHOR_DATE=2001-02-03T04:05:06Z GIT_COMMITTER_DATE=2001-02-03T04:05:06Z
         git init -q -b main r; cd r; git config user.name t; git config user.email t@example.org
         for i in $(seq 50); do echo $i > f$i; done; git add .; git commit -qm one
         git checkout -qb two; echo x >> f1; git commit -qam two; git checkout -q main
         git merge -q two; git gc -q; git status --short; git fsck --strict 2>&1; git log --format=%H
         cd ..; rm -rf r",
    );
}

#[test]
fn sqlite_keeps_a_database() {
    let Some(mut mounted) = mounted("sqlite below a mount", &[]) else {
        return;
    };
    if !needs("sqlite below a mount", &["sqlite3"]) {
        return;
    }
    let done = mounted.shell(
        "sqlite3 d.db 'PRAGMA journal_mode=WAL; CREATE TABLE t(a); WITH RECURSIVE n(i) AS
            (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) INSERT INTO t SELECT i FROM n;'
         sqlite3 d.db 'SELECT sum(a) FROM t; PRAGMA integrity_check;'
         (sleep 0.2; sqlite3 -cmd '.timeout 9000' d.db 'INSERT INTO t VALUES(1)') &
         sqlite3 -cmd '.timeout 9000' d.db 'BEGIN IMMEDIATE; INSERT INTO t VALUES(2); COMMIT;'
         wait; sqlite3 d.db 'SELECT count(*) FROM t'",
    );
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "wal\n200010000\nok\n20002\n",
        "{done:?}"
    );
    assert!(mounted.unmount().success());
}

#[test]
fn make_builds_a_program() {
    same(
        "make below a mount",
        &["make", "gcc"],
        r#"printf 'p: a.o b.o\n\tgcc -o p a.o b.o\n%%.o: %%.c h.h\n\tgcc -c $<\n' > Makefile
           echo 'int f(void);' > h.h
           echo '#include "h.h"
           int main(void) { return f(); }' > a.c
           echo '#include "h.h"
           int f(void) { return 0; }' > b.c
           make -j2 >/dev/null; ./p; make -q; touch -d 2001-02-03 b.o; ! make -q; rm p *.o"#,
    );
}

/// The kernel closes the file during the exec, and waits for the file system while it holds a lock
/// that readers of `/proc` need.
#[test]
fn a_program_with_an_open_file_executes_another() {
    same(
        "an exec with an open file below a mount",
        &["python3"],
        r#"for i in 1 2 3; do python3 -c '
import os
file = os.open("file", os.O_RDWR | os.O_CREAT)
os.write(file, b"text")
if os.fork() == 0:
    os.execvp("cat", ["cat", "file"])
open("parent", "w").write("text")
os.wait()
' ; done"#,
    );
}
