//! Derived views: each list of the embedded `tools.toml` is judged as `docs/currency.md` says. For
//! each, a similar use of the file counts.

use backstory_workflow::tools::knowledge;

use crate::used::Used;

/// A program of the user's.
fn tool() -> Used {
    Used::by(&[&["tool"]])
}

#[test]
fn a_change_of_a_file_that_the_c_library_opens_in_every_program_decides_nothing() {
    for path in &knowledge().derived.everybody {
        tool().read_changed(path).is_current();
    }
    tool()
        .read_changed("/etc/shells")
        .is_stale_because_of("/etc/shells");
}

/// The index of the machine is not changed here. `tests/extended` moves a library.
#[test]
fn a_change_of_the_index_of_libraries_decides_nothing_if_the_loader_finds_the_same_libraries() {
    let paths = &knowledge().derived.library_indexes;
    assert_eq!(paths[..], ["/etc/ld.so.cache"]);
    tool().read_changed(&paths[0]).is_current();
    let printed = std::process::Command::new("/sbin/ldconfig")
        .arg("-p")
        .output();
    let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
    let libc = printed
        .lines()
        .find(|line| line.contains("libc.so.6 (libc6,x86-64)"));
    let Some((_, libc)) = libc.and_then(|line| line.split_once(" => ")) else {
        let why = "ldconfig knows no libc.so.6 of this machine's kind";
        backstory_testkit::need::skipped("another view of a library", why);
        return;
    };
    let real = std::fs::canonicalize(libc).unwrap();
    let used = tool();
    used.loaded(real.to_str().unwrap(), libc);
    used.read_changed(&paths[0]).is_current();
}

#[test]
fn a_change_of_an_index_that_is_made_of_other_files_decides_nothing() {
    for part in &knowledge().derived.indexes {
        let name = match part.ends_with('/') {
            true => format!("share{part}index"),
            false => format!("share{part}"),
        };
        let used = tool();
        used.read(&name)
            .write(&name, "changed since\n")
            .is_current();
    }
    let used = tool();
    used.read("share/fonts.conf")
        .write("share/fonts.conf", "changed since\n");
    used.is_stale_because_of("share/fonts.conf");
}

#[test]
fn a_change_of_a_cache_decides_nothing_for_the_program_that_keeps_it() {
    let used = tool();
    used.read("home/.cache/x/y")
        .wrote("home/.cache/x/z")
        .write("home/.cache/x/y", "changed since\n");
    used.is_current();
    let used = tool();
    used.read("home/.cache/x/y")
        .write("home/.cache/x/y", "changed since\n");
    used.is_stale_because_of("home/.cache/x/y");
    let used = tool();
    used.read("home/cache/x/y")
        .write("home/cache/x/y", "changed since\n");
    used.is_stale_because_of("home/cache/x/y");
}

#[test]
fn a_change_of_the_user_database_counts_for_programs_that_read_all_of_it_only() {
    let lists = &knowledge().derived;
    for path in &lists.accounts {
        for switch in &lists.account_switches {
            let used = tool();
            used.read_changed(switch).read_changed(path).is_current();
        }
        if !lists.account_switches.contains(path) {
            tool().read_changed(path).is_stale_because_of(path);
        }
        for lister in &lists.account_listers {
            let used = Used::by(&[&[lister.as_str()]]);
            used.read_changed(&lists.account_switches[0]);
            used.read_changed(path).is_stale_because_of(path);
        }
    }
}

#[test]
fn a_change_of_the_lists_of_packages_decides_nothing_for_tools_that_look_up_single_packages() {
    let lists = &knowledge().derived;
    for directory in &lists.package_lists {
        let path = format!("{directory}status");
        for reader in &lists.package_readers {
            let used = Used::by(&[&[reader.as_str()], &["tool"]]);
            used.read_changed(&path).is_current();
        }
        let script = Used::by(&[&["perl", "/usr/bin/dh_shlibdeps"]]);
        script.read_changed(&path).is_current();
        for program in ["dpkg-query", "tool"] {
            let used = Used::by(&[&[program]]);
            used.read_changed(&path).is_stale_because_of(&path);
        }
    }
}

#[test]
fn a_compiled_python_module_is_judged_by_its_source() {
    const COMPILED: &str = "__pycache__/part.cpython-311.pyc";
    let run = || {
        let used = Used::by(&[&["python3", "main.py"]]);
        used.read("part.py").read(COMPILED);
        used
    };
    run().write(COMPILED, "compiled anew\n").is_current();
    let used = run();
    used.write("part.py", "changed since\n");
    used.is_stale_because_of("part.py");
    let used = Used::by(&[&["python3", "main.py"]]);
    used.read(COMPILED).write(COMPILED, "compiled anew\n");
    used.is_stale_because_of(COMPILED);
}

#[test]
fn a_name_that_appeared_in_a_tools_directory_counts_if_the_program_looked_for_that_module() {
    for finder in &knowledge().derived.module_finders {
        let run = || {
            let used = Used::by(&[&[finder.as_str(), "main"]]);
            used.listed("site-packages", &["known.py"]);
            used.missed("site-packages/wanted/__init__.py");
            used
        };
        let used = run();
        used.write("site-packages/other.py", "").is_current();
        let used = run();
        used.write("site-packages/wanted.py", "");
        used.is_stale_because_of("site-packages/wanted.py");
    }
    let used = Used::by(&[&["ls", "site-packages"]]);
    used.listed("site-packages", &["known.py"]);
    used.write("site-packages/other.py", "");
    used.is_stale_because_of("site-packages/other.py");
    let used = Used::by(&[&["python3", "main"]]);
    used.listed("parts", &["known.py"]);
    used.write("parts/other.py", "");
    used.is_stale_because_of("parts/other.py");
}

#[test]
fn a_change_of_a_dependency_file_decides_nothing_for_the_builder_that_read_it() {
    for ending in &knowledge().derived.dependency_files {
        let name = format!("objects/part{ending}");
        let run = |program: &str| {
            let used = Used::by(&[&[program]]);
            used.read(&name).write(&name, "changed since\n");
            used
        };
        run("make").is_current();
        run("tool").is_stale_because_of(&name);
    }
}
