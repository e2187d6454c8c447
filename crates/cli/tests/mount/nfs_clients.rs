//! What NFS clients do through an exported mount.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

use backstory_testkit::nfs_server::NfsServer;

use crate::mount::mounted::{MountedDirectory, mounted};

/// An exported mount of a directory that all users can write to.
fn exported(what: &str) -> Option<(MountedDirectory, NfsServer)> {
    let mounted = mounted(what, &["--nfs"])?;
    // Not behind the mount: the kernel keeps attributes of directories for a second.
    fs::set_permissions(&mounted.at, fs::Permissions::from_mode(0o777)).unwrap();
    let directory = mounted.stage.path().join("nfs");
    let server = NfsServer::start(what, &mounted.at, &directory).unwrap()?;
    Some((mounted, server))
}

impl MountedDirectory {
    fn answer_about(&self, question: &[&str], path: &str) -> String {
        let path = self.behind.join(path);
        let words: Vec<&str> = question.iter().copied().chain(path.to_str()).collect();
        self.answer(&words)
    }
}

#[test]
fn what_nfs_clients_do_is_recorded_as_their_doing() {
    let what = "NFS clients of an exported mount";
    let Some((mut mounted, server)) = exported(what) else {
        return;
    };
    fs::write(mounted.behind.join("in"), "source").unwrap();
    fs::write(mounted.behind.join("elsewhere"), "other").unwrap();
    let first =
        "read in\nwrite new text\nrename new out\nlink out second\nunlink second\nread out\n";
    assert_eq!(server.done(1000, first).unwrap(), "source\ntext\n");
    assert_eq!(
        server.done(1001, "write other mine\nread other\n").unwrap(),
        "mine\n"
    );
    assert!(mounted.shell("cat out > copy").status.success());
    server.end().unwrap();
    assert!(mounted.unmount().success());
    assert_eq!(
        fs::read_to_string(mounted.behind.join("out")).unwrap(),
        "text"
    );
    assert!(!mounted.behind.join("second").exists());

    let processes = mounted.answer(&["processes", "--all"]);
    for user in [
        "user 1000, group 1000",
        "user 1001, group 1001",
        "user not told",
    ] {
        let line = format!("NFS client of ganesha.nfsd: {user}");
        assert!(processes.contains(&line), "{processes}");
    }
    // The program of the server has made nothing.
    let made = mounted.answer_about(&["of"], "out");
    assert!(made.contains("user 1000, group 1000"), "{made}");
    assert!(!made.contains("ganesha.nfsd -F"), "{made}");
    assert!(!made.contains("user 1001"), "{made}");
    let made = mounted.answer_about(&["of"], "other");
    assert!(made.contains("user 1001, group 1001"), "{made}");
    // The server does not tell the user of a read.
    let sources = mounted.answer_about(&["of", "--possible", "--json"], "out");
    assert!(sources.contains("/behind/in\""), "{sources}");
    assert!(!sources.contains("/elsewhere\""), "{sources}");
    let copied = mounted.answer_about(&["of"], "copy");
    assert!(copied.contains("user 1000, group 1000"), "{copied}");
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
}

#[test]
fn a_server_of_an_unexported_mount_is_a_process_like_others() {
    let what = "an NFS server of a mount without --nfs";
    let Some(mut mounted) = mounted(what, &[]) else {
        return;
    };
    let directory = mounted.stage.path().join("nfs");
    let Some(server) = NfsServer::start(what, &mounted.at, &directory).unwrap() else {
        return;
    };
    server.end().unwrap();
    assert!(mounted.unmount().success());
    let processes = mounted.answer(&["processes", "--all"]);
    assert!(processes.contains("ganesha.nfsd"), "{processes}");
    assert!(!processes.contains("NFS client"), "{processes}");
}

/// Operations of one client in a directory of its own, and the files that they leave.
fn workload(client: usize, rounds: usize) -> (String, Vec<(String, String)>) {
    let mut operations = format!("mkdir d{client}\n");
    let mut left = Vec::new();
    for round in 0..rounds {
        let name = format!("d{client}/f{round}");
        operations += &format!(
            "write {name} {round}\nlink {name} {name}-b\nunlink {name}\nrename {name}-b {name}\n\
             append {name} -{client}\nread {name}\n"
        );
        match round % 3 {
            0 => operations += &format!("unlink {name}\n"),
            _ => left.push((name, format!("{round}-{client}"))),
        }
    }
    (operations, left)
}

#[test]
#[ignore = "long: 4 NFS clients with 200 rounds each"]
fn many_clients_and_local_processes_share_an_exported_mount() {
    let Some((mut mounted, server)) = exported("many NFS clients") else {
        return;
    };
    let rounds = 200;
    let works: Vec<_> = (0..4).map(|client| workload(client, rounds)).collect();
    let started = works.iter().enumerate().map(|(client, (operations, _))| {
        let mut running = server.client(2000 + client as u32).spawn().unwrap();
        let mut input = running.stdin.take().unwrap();
        let operations = operations.clone();
        let fed = std::thread::spawn(move || input.write_all(operations.as_bytes()));
        (running, fed)
    });
    let mut running: Vec<_> = started.collect();
    // Meanwhile local processes read, and the kernel forgets files.
    let lives = |child: &mut Child| matches!(child.try_wait(), Ok(None));
    while running.iter_mut().any(|(child, _)| lives(child)) {
        mounted.shell("cat d*/f* > /dev/null 2>&1 || true");
        mounted.forget_all();
    }
    for (client, (child, fed)) in running.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{client}: {said}");
        fed.join().unwrap().unwrap();
        let read = String::from_utf8(output.stdout).unwrap();
        let wanted: String = (0..rounds)
            .map(|round| format!("{round}-{client}\n"))
            .collect();
        assert_eq!(read, wanted, "client {client}");
    }
    server.end().unwrap();
    assert!(mounted.unmount().success());
    for (name, text) in works.iter().flat_map(|(_, left)| left) {
        assert_eq!(
            &fs::read_to_string(mounted.behind.join(name)).unwrap(),
            text
        );
    }
    for client in 0..4 {
        let made = mounted.answer_about(&["of"], &format!("d{client}/f{}", rounds - 1));
        assert!(made.contains(&format!("user {}", 2000 + client)), "{made}");
    }
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
}
