//! Version managers and launchers are looked through: the step is the program that they start.

use super::*;
use backstory_testkit::need::needs;
/// The commands of the latest run's steps, without the script's beginning.
fn steps(place: &Place) -> Vec<String> {
    let script = place.run(&["export", "shell"]).out;
    let (_, steps) = script.split_once("\ncd ").unwrap_or(("", &script));
    let lines = steps.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn program(place: &Place, name: &str, text: &str) {
    backstory_testkit::program::write(place.path(name).as_ref(), text.as_bytes()).unwrap();
    place.age(name);
}

/// Records a script, in which these directories are searched for programs first.
fn record_script(place: &Place, directories: &[&str], script: &str) {
    place.write_aged("all.sh", script);
    let mut path: String = directories
        .iter()
        .map(|one| place.path(one) + ":")
        .collect();
    path.push_str("/usr/bin:/bin");
    let mut command = place.command(&["record", "--", "sh", "all.sh"]);
    let output = command.env("PATH", path).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn directories(place: &Place, names: &[&str]) {
    for name in names {
        std::fs::create_dir(place.path(name)).unwrap();
        place.stage.user().owns(place.path(name).as_ref()).unwrap();
    }
}

const SHIM: &str =
    "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexec pyenv exec \"$program\" \"$@\"\n";

/// As pyenv: bash starts bash for each of its parts, and reads their answers through pipes.
const MANAGER: &str = "#!/usr/bin/env bash
set -e
command=$1; shift
case $command in
exec)
  PYENV_VERSION=\"$(pyenv version-name)\"; export PYENV_VERSION
  found=\"$(pyenv which \"$1\")\"; shift
  exec \"$found\" \"$@\" ;;
version-name) cat \"${0%/*}/version\" | tr -d '\\n' ;;
which) basename \"$1\" | sed 's|^|/usr/bin/|' ;;
esac
";

#[test]
fn the_step_of_a_version_managers_shim_is_the_interpreter_that_it_starts() {
    if !needs("version managers", &["/usr/bin/python3", "bash"]) {
        return;
    }
    for manager in ["manager", ".pyenv"] {
        let place = Place::new();
        let (shims, libexec) = (format!("{manager}/shims"), format!("{manager}/libexec"));
        directories(&place, &[manager, &shims, &libexec]);
        program(&place, &format!("{shims}/python3"), SHIM);
        program(&place, &format!("{libexec}/pyenv"), MANAGER);
        place.write_aged(&format!("{libexec}/version"), "3.11.7\n");
        let script = "python3 -c 'open(\"x.txt\",\"w\").write(\"1\")'\npyenv exec python3 -c 'open(\"y.txt\",\"w\").write(\"2\")'\n";
        record_script(&place, &[&shims, &libexec], script);
        let found = steps(&place);
        assert_eq!(
            found,
            [
                "python3 -c 'open(\"x.txt\",\"w\").write(\"1\")'",
                "/usr/bin/python3 -c 'open(\"y.txt\",\"w\").write(\"2\")'"
            ],
            "{manager}"
        );
    }
}

#[test]
fn the_step_of_a_launcher_is_the_program_that_it_starts() {
    if !needs(
        "launchers",
        &["nice", "timeout", "stdbuf", "setsid", "flock", "xargs"],
    ) {
        return;
    }
    let place = Place::new();
    place.write_aged("in.txt", "b\na\n");
    record_script(
        &place,
        &[],
        "env A=1 nice -n 5 timeout 900 stdbuf -o0 sort in.txt > a.txt\n\
         nohup setsid -w cp a.txt b.txt\n\
         echo b.txt | xargs -I@ cp @ c.txt\n\
         flock lock cp c.txt d.txt\n\
         timeout 900 sort -r d.txt > e.txt 2>&1\n",
    );
    assert_eq!(
        steps(&place),
        [
            "A=1 sort in.txt > a.txt",
            "cp a.txt b.txt",
            "cp b.txt c.txt",
            "cp c.txt d.txt",
            "sort -r d.txt > e.txt 2>&1",
        ]
    );
}

#[test]
fn what_time_prints_about_a_program_stays_and_time_without_a_file_is_looked_through() {
    if !needs("time as a program", &["/usr/bin/time"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in.txt", "b\na\n");
    record_script(
        &place,
        &[],
        "/usr/bin/time -p sort in.txt > a.txt\n/usr/bin/time -o t.txt cp a.txt b.txt\n/usr/bin/time -p cp b.txt c.txt 2> u.txt\n",
    );
    assert_eq!(
        steps(&place),
        [
            "sort in.txt > a.txt",
            "/usr/bin/time -o t.txt cp a.txt b.txt",
            "/usr/bin/time -p cp b.txt c.txt 2> u.txt",
        ]
    );
}

#[test]
fn the_step_of_a_compiler_cache_is_the_compiler() {
    if !needs("compiler caches", &["ccache", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("m.c", "int main(void) { return 0; }\n");
    let compile = "CCACHE_DIR=$PWD/.ccache ccache gcc -c m.c -o m.o\n";
    record_script(&place, &[], compile);
    assert_eq!(
        steps(&place),
        ["CCACHE_DIR=$PWD/.ccache gcc -c m.c -o m.o"]
            .map(|line| line.replace("$PWD", place.work().to_str().unwrap()))
    );
    // The second time the compiler does not run.
    std::fs::remove_file(place.path("m.o")).unwrap();
    record_script(&place, &[], compile);
    let found = steps(&place);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with(" gcc -c m.c -o m.o"), "{found:?}");
}

#[test]
fn a_version_manager_that_is_installed_here_is_looked_through() {
    for (manager, script) in [
        (
            "direnv",
            "direnv allow . && direnv exec . cp in.txt out.txt\n",
        ),
        ("fakeroot", "fakeroot cp in.txt out.txt\n"),
    ] {
        if !needs(manager, &[manager]) {
            continue;
        }
        let place = Place::new();
        place.write_aged("in.txt", "a\n");
        place.write_aged(".envrc", "true\n");
        record_script(&place, &[], script);
        let found = steps(&place);
        let last = found.last().map(String::as_str);
        assert_eq!(last, Some("cp in.txt out.txt"), "{found:?}");
    }
}

#[test]
fn a_compiler_that_distcc_starts_is_the_step() {
    if !needs("a distributing compiler launcher", &["distcc", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("m.c", "int main(void) { return 0; }\n");
    let script = "DISTCC_DIR=$PWD/.distcc DISTCC_HOSTS=localhost distcc gcc -c m.c -o m.o\n";
    record_script(&place, &[], script);
    let of = place.run(&["of", "m.o"]).out;
    assert!(of.contains("\n  gcc -c m.c -o m.o\n"), "{of}");
    assert!(of.contains("sources: m.c\n"), "{of}");
}

#[test]
fn a_script_that_uv_runs_is_the_step() {
    let Some(uv) = crate::engines::engine("a launcher of Python", "uv") else {
        return;
    };
    let place = Place::new();
    let allowed = place
        .stage
        .command(uv.to_str().unwrap())
        .arg("--version")
        .output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        backstory_testkit::need::skipped("a launcher of Python", "the stage's user may not run uv");
        return;
    }
    place.write_aged("in.txt", "a\n");
    place.write_aged(
        "p.py",
        "open('out.txt', 'w').write(open('in.txt').read().upper())\n",
    );
    let script = format!(
        "UV_CACHE_DIR=$PWD/.cache UV_OFFLINE=1 {} run --quiet --no-project python p.py\n",
        uv.canonicalize().unwrap().display()
    );
    record_script(&place, &[], &script);
    let of = place.run(&["of", "out.txt"]).out;
    let step = of.lines().nth(1).unwrap();
    assert!(step.ends_with(" p.py") && !step.contains("uv"), "{of}");
    assert!(of.contains("sources: p.py, in.txt\n"), "{of}");
}

#[test]
fn a_program_of_a_package_that_npx_runs_is_the_step() {
    if !needs("a launcher of Node.js", &["npx", "node"]) {
        return;
    }
    let place = Place::new();
    directories(
        &place,
        &["node_modules", "node_modules/.bin", "node_modules/shout"],
    );
    place.write_aged("in.txt", "a\n");
    place.write_aged(
        "package.json",
        "{\"name\": \"x\", \"version\": \"1.0.0\"}\n",
    );
    place.write_aged(
        "node_modules/shout/package.json",
        "{\"name\": \"shout\", \"version\": \"1.2.3\", \"bin\": {\"shout\": \"shout.js\"}}\n",
    );
    program(
        &place,
        "node_modules/shout/shout.js",
        "#!/usr/bin/env node\nconst fs = require('fs');\n\
         fs.writeFileSync('out.txt', fs.readFileSync('in.txt', 'utf8').toUpperCase());\n",
    );
    let bin = place.path("node_modules/.bin/shout");
    std::os::unix::fs::symlink("../shout/shout.js", bin).unwrap();
    let script = "npm_config_cache=$PWD/.npm npx --offline shout 2> log\n";
    record_script(&place, &[], script);
    let of = place.run(&["of", "out.txt"]).out;
    let step = of.lines().nth(1).unwrap();
    assert!(step.contains("shout") && !step.contains("npx"), "{of}");
    let inputs = place.run(&["of", "out.txt", "--inputs"]).out;
    assert!(inputs.lines().any(|line| line == "in.txt"), "{inputs}");
    let packages = place.run(&["of", "out.txt", "--packages"]).out;
    assert!(packages.contains("shout 1.2.3 (npm)"), "{packages}");
}
