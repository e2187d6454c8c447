//! `inputs --undeclared`: what a build read and did not declare, and the other way round. Each test
//! plants one omission of each kind.

use super::*;
use backstory_testkit::need::needs;

/// A project whose `m.c` includes `x.h`, which rules may forget. No file includes `old.h`.
fn project(place: &Place) {
    place.write_aged(
        "m.c",
        "#include \"m.h\"\n#include \"x.h\"\nint main(void) { return M + X; }\n",
    );
    place.write_aged("m.h", "#define M 0\n");
    place.write_aged("x.h", "#define X 0\n");
    place.write_aged("old.h", "\n");
}

/// The answer about the latest run: exit status, undeclared files and unread files, each with its
/// targets, relative to the working directory.
fn compared(place: &Place, options: &[&str]) -> (i32, Vec<String>, Vec<String>) {
    let answer = place.run(&[&["inputs", "--undeclared", "--json"], options].concat());
    let json: Value = serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{answer:?}"));
    let work = format!("{}/", place.work().canonicalize().unwrap().display());
    let listed = |key: &str| -> Vec<String> {
        let files = json[key].as_array().unwrap().iter();
        files
            .map(|file| {
                let targets = file["targets"].as_array().unwrap().iter();
                let targets: Vec<&str> = targets.map(|one| one.as_str().unwrap()).collect();
                let line = format!(
                    "{} by {}",
                    file["path"].as_str().unwrap(),
                    targets.join(" ")
                );
                line.replace(&work, "")
            })
            .collect()
    };
    (answer.status, listed("undeclared"), listed("unread"))
}

fn found(place: &Place, options: &[&str], target: &str) {
    let (undeclared, unread) = (format!("x.h by {target}"), format!("old.h by {target}"));
    assert_eq!(
        compared(place, options),
        (1, vec![undeclared], vec![unread])
    );
}

#[test]
fn a_header_that_a_makefile_forgets_is_undeclared_and_one_too_many_is_unread() {
    if !needs("undeclared inputs of make", &["make", "gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    std::fs::create_dir(place.path("sub")).unwrap();
    place.stage.user().owns(place.path("sub").as_ref()).unwrap();
    place.write_aged("Makefile", "all: m copy\nm: m.o\n\tgcc -o $@ m.o\nm.o: m.c m.h old.h | sub\n\tgcc -c m.c -o $@\ncopy:\n\t$(MAKE) -C sub\n.PHONY: all copy\n");
    place.write_aged("sub/Makefile", "b: ../m.h\n\tcat ../m.h ../x.h > $@\n");
    place.record("make");
    assert_eq!(
        compared(&place, &[]),
        (
            1,
            vec!["x.h by m.o sub/b".to_owned()],
            vec!["old.h by m.o".to_owned()]
        )
    );
    let text = place.run(&["inputs", "--undeclared"]).out;
    assert!(text.contains("x.h"), "{text}");

    place.write_aged(
        "Makefile",
        "m: m.o\n\tgcc -o $@ m.o\nm.o: m.c m.h x.h\n\tgcc -c m.c -o $@\n",
    );
    place.record("touch m.c; rm m; make");
    assert_eq!(compared(&place, &[]), (0, vec![], vec![]));
}

#[test]
fn a_source_of_a_rule_that_make_has_built_in_is_declared() {
    if !needs("undeclared inputs of make", &["make", "gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    place.write_aged("Makefile", "m: m.o\nm.o: m.h old.h\n");
    place.record("make");
    found(&place, &[], "m.o");
}

#[test]
fn a_file_is_declared_by_each_name_that_the_build_uses_for_it() {
    if !needs("inputs through links", &["make"]) {
        return;
    }
    let place = Place::new();
    assert_eq!(place.command_line("mkdir real; ln -s real link").status, 0);
    place.write_aged("real/in", "text\n");
    place.write_aged(
        "Makefile",
        "all: first out\nfirst: real/in\n\tcat real/in > $@\nout: link/in\n\tcat link/in > $@\n",
    );
    place.record("make");
    assert_eq!(compared(&place, &[]), (0, vec![], vec![]));
}

#[test]
fn ninjas_rules_and_the_inputs_that_its_compilers_report_are_declarations() {
    if !needs("undeclared inputs of ninja", &["ninja", "gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    let rule = |extra: &str| {
        format!("rule cc\n  command = gcc {extra} -c $in -o $out\nbuild m.o: cc m.c | m.h old.h\n")
    };
    place.write_aged("build.ninja", &rule(""));
    place.record("ninja");
    found(&place, &[], "m.o");
    let with_deps = rule("-MD -MF $out.d")
        .replace("build", "  depfile = $out.d\n  deps = gcc\nbuild")
        .replace(" old.h", "");
    place.write_aged("build.ninja", &with_deps);
    place.record("ninja");
    assert_eq!(compared(&place, &[]), (0, vec![], vec![]));
}

#[test]
fn a_file_that_a_cmake_command_reads_without_naming_it_is_undeclared() {
    if !needs(
        "undeclared inputs of CMake",
        &["cmake", "ninja", "make", "gcc"],
    ) {
        return;
    }
    for generator in ["Ninja", "Unix Makefiles"] {
        let place = Place::new();
        project(&place);
        place.write_aged(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.10)\nproject(p C)\n\
             add_custom_command(OUTPUT gen.h COMMAND cat ${CMAKE_SOURCE_DIR}/m.h ${CMAKE_SOURCE_DIR}/x.h > gen.h DEPENDS m.h old.h)\n\
             add_custom_target(gen ALL DEPENDS gen.h)\nadd_executable(m m.c)\n",
        );
        place.record(&format!("cmake -G '{generator}' -B b . && cmake --build b"));
        found(&place, &[], "b/gen.h");
    }
}

#[test]
fn a_depfile_declares_what_the_compiler_read_and_a_command_beside_it_does_not() {
    if !needs("undeclared inputs beside depfiles", &["gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    place.record("gcc -MD -c m.c -o m.o");
    assert_eq!(compared(&place, &[]), (0, vec![], vec![]));
    place.record("gcc -MD -c m.c -o m.o && cat old.h > copy");
    assert_eq!(
        compared(&place, &[]),
        (1, vec!["old.h by copy".to_owned()], vec![])
    );
}

#[test]
fn a_list_of_paths_and_patterns_declares_the_inputs_of_a_run() {
    let place = Place::new();
    for name in ["a.txt", "b.csv", "c.csv", "d.txt"] {
        place.write_aged(name, "1\n");
    }
    place.write_aged("declared", "# the inputs\na.txt\n*.csv\nd.txt\n");
    place.record("cat a.txt b.csv c.csv > out; cat script.sh x.txt 2> /dev/null || true");
    let run = place.record("cat a.txt b.csv m.txt > out 2> /dev/null || sort b.csv > out2");
    let _ = run;
    place.write_aged("m.txt", "2\n");
    place.record("cat a.txt b.csv m.txt > out");
    assert_eq!(
        compared(&place, &["--declared", "declared"]),
        (
            1,
            vec!["m.txt by out".to_owned()],
            vec!["d.txt by ".to_owned()]
        )
    );
    place.write_aged("declared", "a.txt\n*.csv\nm.txt\n");
    assert_eq!(
        compared(&place, &["--declared", "declared"]),
        (0, vec![], vec![])
    );
}

#[test]
fn a_script_that_a_snakemake_rule_reads_and_does_not_name_is_undeclared() {
    let place = Place::new();
    for name in ["in.txt", "x.txt", "old.txt"] {
        place.write_aged(name, "1\n");
    }
    // As Snakemake writes it after each job: the name is the output's path in base 64.
    let record = "{\\\"rule\\\": \\\"all\\\", \\\"input\\\": [\\\"in.txt\\\", \\\"old.txt\\\"], \\\"code\\\": null}";
    place.record(&format!(
        "cat in.txt x.txt > out.txt; mkdir -p .snakemake/metadata; echo \"{record}\" > .snakemake/metadata/b3V0LnR4dA=="
    ));
    assert_eq!(
        compared(&place, &[]),
        (
            1,
            vec!["x.txt by out.txt".to_owned()],
            vec!["old.txt by out.txt".to_owned()]
        )
    );
}

#[test]
fn a_package_beyond_the_build_dependencies_is_undeclared() {
    let header = "/usr/include/zlib.h";
    if !needs(
        "undeclared build dependencies",
        &[header, "/var/lib/dpkg/status"],
    ) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("debian")).unwrap();
    place
        .stage
        .user()
        .owns(place.path("debian").as_ref())
        .unwrap();
    let control = |depends: &str| {
        place.write_aged(
            "debian/control",
            &format!("Source: x\nBuild-Depends: {depends}\n\nPackage: x\n"),
        );
    };
    place.write_aged("declared", "**\n");
    control("debhelper-compat (= 13), nothing-like-it-dev");
    place.record(&format!("cat {header} > copy.h"));
    let packages = || {
        let answer = place.run(&["inputs", "--undeclared", "--json"]);
        let json: Value =
            serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{answer:?}"));
        let names = |key: &str| -> Vec<String> {
            let all = json[key].as_array().unwrap().iter();
            all.map(|one| one["name"].as_str().unwrap().to_owned())
                .collect()
        };
        (
            answer.status,
            names("undeclared_packages"),
            names("unread_packages"),
        )
    };
    let (status, undeclared, unread) = packages();
    assert_eq!((status, undeclared), (1, vec!["zlib1g-dev".to_owned()]));
    assert!(
        unread.contains(&"nothing-like-it-dev".to_owned()),
        "{unread:?}"
    );
    control("zlib1g-dev");
    assert_eq!(packages(), (0, vec![], vec![]));
}

/// A package is built from its whole source tree, so that its makefiles need not name headers.
#[test]
fn the_source_tree_of_a_package_declares_its_files_and_no_others() {
    if !needs("undeclared inputs of a package", &["gcc", "make"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("pkg")).unwrap();
    place.stage.user().owns(place.path("pkg").as_ref()).unwrap();
    place.write_aged("pkg/m.h", "#define M 1\n");
    place.write_aged(
        "pkg/m.c",
        "#include \"m.h\"\n#include \"../other.h\"\nint m = M;\n",
    );
    place.write_aged("other.h", "#define OTHER 1\n");
    place.write_aged("pkg/Makefile", "m.o: m.c\n\tgcc -c m.c\n");
    program(&place, "pkg/dpkg-buildpackage", "#!/bin/sh\nexec make\n");
    place.record("cd pkg && ./dpkg-buildpackage");
    let (status, undeclared, unread) = compared(&place, &[]);
    assert_eq!((status, unread), (1, vec![]));
    assert_eq!(undeclared, ["other.h by pkg/m.o"]);
    place.record("rm pkg/m.o; cd pkg && make");
    let all = ["other.h by pkg/m.o", "pkg/m.h by pkg/m.o"];
    assert_eq!(compared(&place, &[]).1, all);
}

fn program(place: &Place, name: &str, text: &str) {
    backstory_testkit::program::write(place.path(name).as_ref(), text.as_bytes()).unwrap();
    place.age(name);
}

#[test]
fn a_header_that_a_configurer_made_is_declared() {
    if !needs("undeclared inputs of a configured build", &["gcc", "make"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("m.c", "#include \"config.h\"\nint m = M;\n");
    let writes = "#!/bin/sh\necho '#define M 1' > config.h\n";
    program(&place, "config.status", writes);
    let rules = "m.o: m.c\n\tgcc -c m.c\nconfig.h: config.status\n\t./config.status\n";
    place.write_aged("Makefile", rules);
    place.record("./config.status && make m.o");
    let (status, undeclared, unread) = compared(&place, &[]);
    assert_eq!((status, undeclared, unread), (0, vec![], vec![]));
}

#[test]
fn a_run_without_declarations_is_no_answer_and_inputs_alone_lists_its_own_files() {
    let place = Place::new();
    place.write_aged("in.txt", "1\n");
    place.record("cat in.txt > mid; cat mid > out");
    let answer = place.run(&["inputs", "--undeclared"]);
    assert_eq!(answer.status, 2, "{answer:?}");
    assert!(answer.err.contains("--declared FILE"), "{answer:?}");
    let listed = place.run(&["inputs"]);
    assert_eq!(listed.status, 0);
    assert!(listed.out.starts_with("in.txt\n"), "{listed:?}");
    assert!(!listed.out.contains("mid"), "{listed:?}");
}

/// The workflow engine itself, and not its files written by hand.
#[test]
fn a_file_that_a_rule_of_snakemake_reads_and_does_not_name_is_undeclared() {
    let Some(snakemake) = crate::engines::engine("rules of Snakemake", "snakemake") else {
        return;
    };
    let place = Place::new();
    let allowed = place
        .stage
        .command(snakemake.to_str().unwrap())
        .arg("--version")
        .output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        backstory_testkit::need::skipped(
            "rules of Snakemake",
            "the stage's user may not run snakemake",
        );
        return;
    }
    place.write_aged("in.txt", "a\n");
    place.write_aged("extra.txt", "b\n");
    place.write_aged(
        "Snakefile",
        "rule up:\n    input: 'in.txt'\n    output: 'out.txt'\n    \
         shell: 'cat {input} extra.txt | tr a-z A-Z > {output}'\n",
    );
    let snakemake = snakemake.canonicalize().unwrap();
    place.record(&format!("{} -c1 --quiet all 2> log", snakemake.display()));
    assert_eq!(
        compared(&place, &[]),
        (1, vec!["extra.txt by out.txt".to_owned()], vec![])
    );
    let of = place.run(&["of", "out.txt"]).out;
    assert!(
        of.contains("cat in.txt extra.txt | tr a-z A-Z > out.txt"),
        "{of}"
    );
}

/// As version 9 of Snakemake works: it asks a solver for a plan through temporary files. The errors
/// of its jobs go where its own go.
#[test]
fn the_plan_and_the_log_of_a_workflow_engine_are_no_steps_of_its_results() {
    let place = Place::new();
    place.write_aged("in.txt", "a\n");
    place.write_program(
        "snakemake",
        "#!/bin/sh\n\
         plan=/tmp/backstory-$$-pulp\n\
         echo NAME x > $plan.mps\n\
         sort $plan.mps > $plan.sol\n\
         read -r first < $plan.sol\n\
         rm $plan.mps $plan.sol\n\
         sh -c 'cat in.txt | tr a-z A-Z > out.txt' 2>> log\n",
    );
    place.record("./snakemake 2> log");
    let of = place.run(&["of", "out.txt"]).out;
    assert!(of.contains("  cat in.txt | tr a-z A-Z > out.txt\n"), "{of}");
    assert!(!of.contains("pulp") && !of.contains("sort"), "{of}");
}
