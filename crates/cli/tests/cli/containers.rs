//! Containers and packs: run by their tools without any original input, they give the results of
//! the recorded run.

use std::process::Command;

use super::Place;
use backstory_testkit::need::{find, needs, skipped};

/// A command with an input, a script and a directory, which prints and writes.
fn recorded() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.work().join("data")).unwrap();
    place.stage.user().owns(&place.work().join("data")).unwrap();
    place.write_aged("data/in", "b\na\nb\n");
    place.write_aged("secret", "nobody read this\n");
    place.write_aged(
        "run.sh",
        "sort data/in > sorted\nuniq -c < sorted\necho \"$GREETING\"\n",
    );
    let mut command = place.command(&["record", "--contents=lazy", "--", "sh", "run.sh"]);
    let output = command
        .env("GREETING", "good 'morning' $HOME")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), EXPECTED);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place
}

const EXPECTED: &str = "      1 a\n      2 b\ngood 'morning' $HOME\n";

fn export(place: &Place, format: &str, name: &str) -> String {
    let answer = place.run(&["export", format, "-o", name]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{format}");
    place.path(name)
}

/// Removes every file of the user that the run used.
fn unlink(place: &Place) {
    for name in ["data/in", "run.sh", "sorted", "secret"] {
        std::fs::remove_file(place.work().join(name)).unwrap();
    }
}

/// podman with all its state below the test's own directory, and limits that an unprivileged
/// machine grants.
struct Podman {
    root: tempfile::TempDir,
}

impl Podman {
    fn new(what: &str) -> Option<Podman> {
        if !needs(what, &["podman", "runc"]) {
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let text = "[containers]\ndefault_ulimits=[\"nofile=1024:4096\",\"nproc=500:1000\"]\n\
                    [engine]\nruntime=\"runc\"\ncgroup_manager=\"cgroupfs\"\nevents_logger=\"file\"\n";
        std::fs::write(root.path().join("containers.conf"), text).unwrap();
        std::fs::write(
            root.path().join("policy.json"),
            r#"{"default": [{"type": "insecureAcceptAnything"}]}"#,
        )
        .unwrap();
        let podman = Podman { root };
        let answer = podman.command(&["info"]).output().unwrap();
        if !answer.status.success() {
            skipped(
                what,
                &format!(
                    "podman does not work here: {}",
                    String::from_utf8_lossy(&answer.stderr)
                ),
            );
            return None;
        }
        Some(podman)
    }

    fn command(&self, args: &[&str]) -> Command {
        let at = |name: &str| {
            self.root
                .path()
                .join(name)
                .into_os_string()
                .into_string()
                .unwrap()
        };
        let mut command = Command::new(find("podman").unwrap());
        command
            .env("CONTAINERS_CONF", at("containers.conf"))
            .args([
                "--root",
                &at("root"),
                "--runroot",
                &at("run"),
                "--storage-driver",
                "vfs",
            ])
            .args(args);
        command
    }

    /// The output of an image.
    fn run(&self, directory: &std::path::Path, image: &str) -> String {
        // A relative path, because podman makes a name of it, which has no capitals.
        let mut command = self.command(&["run", "--rm", "--network", "none", "--signature-policy"]);
        let output = command
            .arg(self.root.path().join("policy.json"))
            .arg(image)
            .current_dir(directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{image}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_container_runs_without_any_of_the_original_files() {
    let Some(podman) = Podman::new("export oci, docker-archive, dockerfile") else {
        return;
    };
    let place = recorded();
    export(&place, "oci", "oci");
    export(&place, "oci-archive", "oci.tar");
    export(&place, "docker-archive", "docker.tar");
    let build = export(&place, "dockerfile", "build");
    unlink(&place);
    for image in [
        "oci:oci",
        "oci-archive:oci.tar",
        "docker-archive:docker.tar",
    ] {
        assert_eq!(podman.run(&place.work(), image), EXPECTED, "{image}");
    }
    let output = podman
        .command(&["build", "-q", "--isolation", "chroot", &build])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let image = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        podman.run(&place.work(), image.trim()),
        EXPECTED,
        "dockerfile"
    );
}

/// A program that has compiled its sources before only compares their times, and only checks that
/// other files exist.
#[test]
fn a_python_program_whose_modules_are_compiled_runs_in_a_container() {
    let (Some(podman), true) = (
        Podman::new("export oci, of Python"),
        needs("export oci, of Python", &["python3"]),
    ) else {
        return;
    };
    let place = Place::new();
    place.write_aged("module.py", "def answer():\n    return 'compiled'\n");
    place.write_aged(
        "main.py",
        "import glob, os, module\nprint(module.answer(), glob.glob('*.dat'), os.path.getsize('b.dat'))\n",
    );
    place.write_aged("a.dat", "1");
    place.write_aged("b.dat", "12");
    let python = |options: &[&str]| {
        let mut command = place.command(options);
        let output = command
            .args(["python3", "main.py"])
            .env_remove("PYTHONDONTWRITEBYTECODE")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.starts_with("compiled ["),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    };
    python(&["record", "--"]);
    place.finalized();
    let expected = python(&["record", "--contents=lazy", "--name", "compiled", "--"]);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let files = place.run(&["files", "compiled"]).out;
    assert!(
        files.contains("module.cpython"),
        "or it was not compiled: {files}"
    );
    export(&place, "oci", "oci");
    let image = place.path("oci");
    std::fs::rename(image, place.path("../oci")).unwrap();
    place.forget_everything();
    std::fs::rename(place.path("../oci"), place.path("oci")).unwrap();
    let said = podman.run(&place.work(), "oci:oci");
    let sorted = |text: &str| {
        let mut words: Vec<String> = text
            .split(['[', ']', ',', ' '])
            .map(str::to_owned)
            .collect();
        words.sort();
        words
    };
    assert_eq!(sorted(&said), sorted(&expected));
}

#[test]
fn an_ordinary_user_runs_an_image_without_any_of_the_original_files() {
    if !needs("export oci, as an ordinary user", &["umoci", "runc"]) {
        return;
    }
    let place = recorded();
    export(&place, "oci", "oci");
    unlink(&place);
    let output = place
        .stage
        .command(find("umoci").unwrap())
        .args(["unpack", "--rootless", "--image", "oci:latest", "bundle"])
        .current_dir(place.work())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A test has no terminal.
    let config = place.work().join("bundle/config.json");
    let mut settings: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    settings["process"]["terminal"] = false.into();
    std::fs::write(&config, settings.to_string()).unwrap();
    let output = place
        .stage
        .command(find("runc").unwrap())
        .args([
            "--root",
            &place.path("runc"),
            "run",
            "--bundle",
            "bundle",
            "backstory-test",
        ])
        .current_dir(place.work())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Where only root may make namespaces, only root has containers.
    if said.contains("operation not permitted") && said.contains("namespace") {
        skipped(
            "export oci, as an ordinary user",
            "user namespaces are not allowed here",
        );
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), EXPECTED, "{said}");
}

#[test]
fn an_image_has_exactly_the_used_files_with_the_users_files_apart() {
    if !needs("layers of an image", &["tar"]) {
        return;
    }
    let place = recorded();
    let build = export(&place, "dockerfile", "build");
    let list = |layer: &str| {
        let output = Command::new("tar")
            .arg("-tf")
            .arg(format!("{build}/{layer}"))
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let own = list("layer1.tar");
    let base = place.work();
    let base = base.to_str().unwrap().trim_start_matches('/');
    for name in ["data/in", "run.sh"] {
        assert!(
            own.contains(&format!("{base}/{name}\n")),
            "no {name} in {own}"
        );
    }
    for name in ["secret", "sorted"] {
        assert!(
            !own.contains(&format!("{base}/{name}\n")),
            "{name} in {own}"
        );
    }
    let packages = list("layer0.tar");
    assert!(
        packages.contains("bin/sort\n") && packages.contains("/libc.so.6\n"),
        "{packages}"
    );
    assert!(
        !packages.contains("run.sh") && !packages.contains("bin/tac\n"),
        "{packages}"
    );
}

#[test]
fn reprounzip_unpacks_a_pack_and_runs_it() {
    let Some(python) = super::standards::python("export reprozip", "reprounzip.main") else {
        return;
    };
    let place = recorded();
    let pack = export(&place, "reprozip", "pack.rpz");
    unlink(&place);
    let into = tempfile::tempdir().unwrap();
    let target = into.path().join("unpacked");
    let reprounzip = |args: &[&str]| {
        let code = "from reprounzip.main import main; main()";
        let mut command = Command::new(&python);
        command
            .args(["-W", "ignore", "-c", code])
            .args(args)
            .arg(&target)
            .env("REPROZIP_USAGE_STATS", "off");
        // Its message about sending statistics is not part of the test.
        let output = command.env("HOME", into.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    reprounzip(&["directory", "setup", &pack]);
    let printed = reprounzip(&["directory", "run"]);
    assert!(printed.contains(EXPECTED), "{printed}");
}

#[test]
fn a_container_without_stored_contents_is_an_error_that_names_the_missing_file() {
    let place = Place::new();
    place.write_aged("in", "a\n");
    place.keep("sort in > out", &["--contents=off"]);
    std::fs::remove_file(place.path("in")).unwrap();
    for format in ["oci", "docker-archive", "dockerfile", "reprozip"] {
        place
            .run(&["export", format, "-o", "image"])
            .is_error(1, &["/in", "--contents"]);
        assert!(!place.work().join("image").exists());
    }
    place.run(&["export", "oci"]).is_error(2, &["oci", "-o"]);
}

/// Flips a bit in the middle of each file below `directory`.
fn damage(directory: &std::path::Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damage(&path);
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let half = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(half) {
            *byte ^= 0x10;
        }
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_content_that_is_damaged_in_the_store_is_never_exported() {
    let place = recorded();
    // The originals still exist. A damaged content in the store is not replaced silently.
    damage(&place.stage.store().join("contents"));
    let answer = place.run(&["export", "oci", "-o", "image"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(!place.work().join("image").exists());
    assert!(answer.err.starts_with("backstory: "), "{answer:?}");
}

/// A large content is not read whole before it is written out.
#[test]
fn damage_in_the_middle_of_a_content_names_the_file() {
    let place = Place::new();
    let text: String = (0..400_000u32)
        .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761)))
        .collect();
    place.write_aged("big", &text);
    let run = place.keep("cat big > out", &["--contents=lazy"]);
    damage(&place.stage.store().join("contents/objects"));
    place.forget_everything();
    for (format, output) in [("oci", "image"), ("reprozip", "a.rpz")] {
        let answer = place.run(&["export", format, "-o", output, &run]);
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(
            answer.err.contains("/work/big held: the content "),
            "{answer:?}"
        );
        assert!(!place.work().join(output).exists());
    }
    let answer = place.replay(&run, &[]);
    if !answer.err.contains("namespace") {
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(
            answer
                .err
                .contains("/work/big for the replay: the content "),
            "{answer:?}"
        );
        assert!(
            !answer.err.contains(".host"),
            "a path that is nowhere: {answer:?}"
        );
    }
}
