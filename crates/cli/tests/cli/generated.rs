//! Everything generated from the definition of the command line: help, man pages, completions.

use std::path::Path;

use super::{Answer, Place};

/// The commands that are listed.
const COMMANDS: [&str; 14] = [
    "record",
    "files",
    "processes",
    "show",
    "log",
    "of",
    "uses",
    "status",
    "rm",
    "note",
    "name",
    "index",
    "completions",
    "man",
];

#[test]
fn every_command_explains_itself_with_examples() {
    let place = Place::new();
    for command in COMMANDS {
        let help = place.run(&[command, "--help"]);
        assert_eq!((help.status, help.err.as_str()), (0, ""), "{command}");
        assert!(
            help.out.contains("Examples:") && help.out.contains(&format!("backstory {command}")),
            "{}",
            help.out
        );
    }
    assert!(place.run(&["--version"]).out.starts_with("backstory "));
}

#[test]
fn misuse_is_2_and_points_to_the_help() {
    let place = Place::new();
    place
        .run(&["of"])
        .is_error(2, &["PATH", "backstory of --help"]);
    place
        .run(&["of", "x", "--json", "--dot"])
        .is_error(2, &["--dot"]);
    place
        .run(&["no-such-command"])
        .is_error(2, &["no-such-command", "--help"]);
    let bare = place.run(&[""; 0]);
    assert!(
        bare.status == 2 && bare.out.is_empty() && bare.err.contains("Examples:"),
        "{bare:?}"
    );
    place
        .run(&["files", "--exclude", "a{b"])
        .is_error(2, &["a{b"]);
}

#[test]
fn there_is_a_man_page_for_each_command() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "pages"]).status, 0);
    let read_by_man = backstory_testkit::need::needs("man pages", &["man"]);
    let mut names = vec!["backstory".to_owned()];
    names.extend(COMMANDS.map(|command| format!("backstory-{command}")));
    for name in names {
        let path = place.path(&format!("pages/{name}.1"));
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains(".TH") && page.contains("Examples:"), "{page}");
        if read_by_man {
            let mut man = place.stage.command("man");
            let shown = Answer::of(man.args(["--warnings", "-l", &path]).output().unwrap());
            assert_eq!((shown.status, shown.err.as_str()), (0, ""), "{name}");
        }
    }
    assert!(
        !place.work().join("pages/backstory-replay-enter.1").exists(),
        "a hidden command"
    );
}

#[test]
fn the_markdown_reference_has_a_page_for_each_command() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "--markdown", "pages"]).status, 0);
    let page = |name: &str| std::fs::read_to_string(place.path(&format!("pages/{name}.md")));
    let list = page("index").unwrap();
    for name in COMMANDS {
        let text = page(&format!("backstory-{name}")).unwrap();
        assert!(
            text.contains("**Examples**") && text.contains("$ backstory"),
            "{text}"
        );
        assert!(list.contains(&format!("(backstory-{name}.md)")), "{list}");
    }
    let record = page("backstory-record").unwrap();
    assert!(record.contains("| `--contents` `MODE` |"), "{record}");
    assert!(
        record.contains("Values: `off`, `lazy`, `all`. Default: `lazy`"),
        "{record}"
    );
    assert!(page("backstory-replay-enter").is_err(), "a hidden command");
}

#[test]
fn help_is_a_command_and_a_misspelt_one_is_recognised() {
    let place = Place::new();
    for (asked, option) in [
        (vec!["help"], vec!["--help"]),
        (vec!["help", "of"], vec!["of", "--help"]),
    ] {
        let (asked, option) = (place.run(&asked), place.run(&option));
        assert_eq!((asked.status, asked.out.as_str()), (0, option.out.as_str()));
    }
    place
        .run(&["recrod", "--", "true"])
        .is_error(2, &["recrod", "record? (see", "`backstory --help`"]);
    place
        .run(&["emit", "wirte"])
        .is_error(2, &["wirte", "write? (see", "`backstory emit --help`"]);
    place
        .run(&["record", "--gaurd=off", "--", "true"])
        .is_error(125, &["--gaurd", "did you mean --guard?"]);
}

#[test]
fn a_word_of_other_programs_leads_to_the_command_that_does_it() {
    let place = Place::new();
    for (word, meant) in [
        ("runs", "log"),
        ("history", "log"),
        ("list", "log"),
        ("ps", "processes"),
        ("ls", "files"),
        ("lineage", "of"),
        ("ancestors", "of"),
        ("descendants", "uses"),
        ("provenance", "of"),
    ] {
        assert!(COMMANDS.contains(&meant), "{meant}");
        let said = format!("{word:?}, did you mean {meant}? (see");
        place.run(&[word]).is_error(2, &[said.as_str()]);
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert_eq!((script.status, script.err.as_str()), (0, ""), "{shell}");
        for command in COMMANDS {
            assert!(script.out.contains(command), "{shell}: {command}");
        }
        if backstory_testkit::need::needs("completions", &[shell]) {
            place.write("script", &script.out);
            let mut check = place.stage.command(shell);
            assert!(
                check
                    .args(["-n", &place.path("script")])
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
}

#[test]
fn bash_completes_commands_and_options() {
    if !backstory_testkit::need::needs("completions", &["bash"]) {
        return;
    }
    let place = Place::new();
    place.write("script", &place.run(&["completions", "bash"]).out);
    let complete = |words: &[&str]| {
        let line = format!(
            "source ./script; COMP_WORDS=({}); COMP_CWORD={}; _backstory backstory {} {}; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let mut bash = place.stage.command("bash");
        let bash = bash.args(["--norc", "-c", &line]).current_dir(place.work());
        Answer::of(bash.output().unwrap()).out
    };
    assert_eq!(complete(&["backstory", "rec"]), "record\n");
    assert_eq!(complete(&["backstory", "record", "--gu"]), "--guard\n");
}

#[test]
fn bash_completes_formats_runs_and_recorded_paths() {
    if !backstory_testkit::need::needs("completions", &["bash"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.stage.directory("work/results").unwrap();
    let answer = place.run(&[
        "record",
        "--name",
        "nightly",
        "--wait",
        "--",
        "sh",
        "-c",
        "cat in > results/report.txt",
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let run = place.json(&["show", "--json"])["run"].clone();
    let run = run.as_str().unwrap().to_owned();
    place.run(&["tag", "nightly", "stage=dev"]);
    // The next question reads the tag into the store, and completion reads the store as it is.
    place.run(&["log"]);
    std::fs::remove_file(place.path("results/report.txt")).unwrap();
    place.write("script", &place.run(&["completions", "bash"]).out);
    // Bash itself finds the function that is registered for the program, and calls it. Bash splits
    // words at `@` and `=`: blanks stand around these here.
    let complete = |line: &str| {
        let typed = line.replace(" @ ", "@").replace(" = ", "=");
        let script = format!(
            "source ./script; backstory() {{ {} \"$@\"; }}\n\
             line='{line}'; eval \"set -- $line\"; COMP_WORDS=(\"$@\"); [[ $line == *' ' ]] && COMP_WORDS+=('')\n\
             COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMP_LINE='{typed}'; COMP_POINT=${{#COMP_LINE}}\n\
             function=$(complete -p backstory | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
             $function backstory \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            place.program(),
        );
        let mut bash = place.stage.command("bash");
        let bash = bash
            .args(["--norc", "-c", &script])
            .current_dir(place.work());
        let store = place.stage.store();
        let answer = Answer::of(bash.env("BACKSTORY_STORE", store).output().unwrap());
        assert_eq!(answer.err, "", "{line}");
        answer.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete("backstory export ro"), ["ro-crate"]);
    assert_eq!(complete("backstory export make ni"), ["nightly"]);
    assert_eq!(complete("backstory show ni"), ["nightly"]);
    assert_eq!(
        complete(&format!("backstory show {}", &run[..4])),
        [run.as_str()]
    );
    assert_eq!(complete("backstory of resu"), ["results/"]);
    assert_eq!(complete("backstory of results/re"), ["results/report.txt"]);
    assert_eq!(
        complete("backstory contents results/report.txt --run ni"),
        ["nightly"]
    );
    let all = complete("backstory show ");
    assert!(
        all.contains(&run) && all.contains(&"nightly".to_owned()),
        "{all:?}"
    );
    assert_eq!(complete("backstory show --ver"), ["--verbose"]);
    assert_eq!(complete("backstory rec"), ["record"]);
    assert_eq!(complete("backstory log --name ni"), ["nightly"]);
    assert_eq!(complete("backstory log --tag st"), ["stage=dev"]);
    assert_eq!(
        complete("backstory contents results/report.txt @ ni"),
        ["nightly"]
    );
    assert_eq!(complete("backstory log --name = ni"), ["nightly"]);
    assert_eq!(complete("backstory record --contents = la"), ["lazy"]);
}

/// A run `nightly` that copied `in` to `out`.
fn record_nightly(place: &Place) {
    place.write_aged("in", "text\n");
    let words = [
        "record",
        "--name=nightly",
        "--wait",
        "--",
        "cp",
        "in",
        "out",
    ];
    let answer = place.run(&words);
    assert_eq!(answer.status, 0, "{answer:?}");
}

#[test]
fn no_completion_offers_an_internal_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]).out;
        assert!(script.contains("rerun"), "{shell}");
        for internal in ["replay-enter", "replay-inside"] {
            assert!(!script.contains(internal), "{shell} offers {internal}");
        }
    }
}

#[test]
fn fish_completes_commands_formats_runs_and_recorded_paths() {
    if !backstory_testkit::need::needs("completions", &["fish"]) {
        return;
    }
    let place = Place::new();
    place.stage.directory("work/home").unwrap();
    record_nightly(&place);
    // Completion reads the store as the last question left it.
    place.run(&["log"]);
    std::fs::remove_file(place.path("out")).unwrap();
    place.write("script", &place.run(&["completions", "fish"]).out);
    let program = place.program();
    let directory = Path::new(&program).parent().unwrap();
    let complete = |line: &str| {
        let script = format!(
            "set -p PATH {}; source ./script; complete -C '{line}'",
            directory.display()
        );
        let mut fish = place.stage.command("fish");
        fish.args(["--no-config", "-c", &script])
            .env("BACKSTORY_STORE", place.stage.store())
            .env("HOME", place.path("home"));
        let answer = Answer::of(fish.current_dir(place.work()).output().unwrap());
        let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        answer.out.lines().map(word).collect::<Vec<_>>()
    };
    assert_eq!(complete("backstory rer"), ["rerun"]);
    assert_eq!(complete("backstory record --gu"), ["--guard"]);
    assert_eq!(complete("backstory show ni"), ["nightly"]);
    assert_eq!(complete("backstory of ou"), ["out"]);
    assert_eq!(complete("backstory export prov-j"), ["prov-json"]);
}

/// Zsh itself, at a terminal: it completes each line, and says what the line is then.
#[test]
fn zsh_completes_runs_and_recorded_paths() {
    if !backstory_testkit::need::needs("completions", &["zsh", "timeout"]) {
        return;
    }
    let place = Place::new();
    place.stage.directory("work/functions").unwrap();
    record_nightly(&place);
    place.run(&["tag", "nightly", "stage=dev"]);
    // The next question reads the tag into the store, and completion reads the store as it is.
    place.run(&["log"]);
    std::fs::remove_file(place.path("out")).unwrap();
    // A file that is no run.
    place.write("night.txt", "");
    let completions = place.run(&["completions", "zsh"]).out;
    place.write("functions/_backstory", &completions);
    let complete = |line: &str| {
        let script = format!(
            "zmodload zsh/zpty; zpty -b shell zsh -f -i; say() {{ zpty -w shell \"$1\" }}\n\
             say 'fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D'\n\
             say 'shown() {{ print -r -- \"<$BUFFER>\" >&2; }}; zle -N shown; bindkey ^B shown'\n\
             say 'path=({} $path); print rea\"\"dy'; zpty -r -m shell seen '*ready*'\n\
             zpty -w -n shell $'{line}\\t\\x02'; zpty -r -m shell seen '*<*>*'; print -r -- $seen",
            Path::new(&place.program()).parent().unwrap().display(),
        );
        let mut zsh = place.stage.command("timeout");
        let zsh = zsh.args(["20", "zsh", "-f", "-c", &script]);
        let zsh = zsh.env("BACKSTORY_STORE", place.stage.store());
        let answer = Answer::of(zsh.current_dir(place.work()).output().unwrap());
        let shown = answer.out.rsplit('<').next().unwrap_or_default();
        shown
            .split('>')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    assert_eq!(complete("backstory show ni"), "backstory show nightly");
    assert_eq!(complete("backstory of o"), "backstory of out");
    assert_eq!(
        complete("backstory log --tag st"),
        "backstory log --tag stage=dev"
    );
    assert_eq!(
        complete("backstory contents out@ni"),
        "backstory contents out@nightly"
    );
}

#[test]
fn the_main_man_page_shows_each_command_with_its_arguments() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "pages"]).status, 0);
    let page = std::fs::read_to_string(place.path("pages/backstory.1")).unwrap();
    for group in ["Record", "Ask", "Act", "Hand on", "Keep house"] {
        assert_eq!(
            page.matches(&format!(".SS \"{group}\"")).count(),
            2,
            "{page}"
        );
    }
    for line in [
        "\\fBbackstory record\\fR [OPTIONS] <CMD>...",
        "\\fBbackstory show\\fR [OPTIONS] [RUN]",
        "\\fBbackstory export\\fR [OPTIONS] [FORMAT] [RUN|PATH]",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    for name in COMMANDS {
        assert!(
            page.contains(&format!("\\fBbackstory {name}\\fR")),
            "{name}"
        );
    }
}

/// The top of the sources.
fn sources() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path below `/usr` where debuggers look for the symbols of `/usr/bin/backstory`.
const SYMBOLS: &str = "lib/debug/usr/bin/backstory.debug";

#[test]
fn installed_files_lie_in_standard_places_and_can_be_uninstalled() {
    if !backstory_testkit::need::needs("make install", &["make", "install", "readelf"]) {
        return;
    }
    let place = Place::new();
    let make = |target: &str| {
        let mut make = std::process::Command::new("make");
        // As under sudo: the existing build is installed.
        make.env("SUDO_USER", "somebody")
            .current_dir(sources())
            .args([
                target,
                &format!("RELEASE={}", env!("CARGO_BIN_EXE_backstory")),
                &format!("DESTDIR={}", place.path("root")),
                "PREFIX=/usr",
            ]);
        let done = Answer::of(make.output().unwrap());
        assert_eq!(done.status, 0, "{done:?}");
    };
    let there = |file: &str| place.work().join("root/usr").join(file).is_file();
    let files = [
        "bin/backstory",
        "share/man/man1/backstory.1",
        "share/man/man1/backstory-of.1",
        "share/bash-completion/completions/backstory",
        "share/zsh/site-functions/_backstory",
        "share/fish/vendor_completions.d/backstory.fish",
        SYMBOLS,
    ];
    make("install");
    for file in files {
        assert!(there(file), "{file}");
    }
    let sections = |file: &str| {
        let mut readelf = std::process::Command::new("readelf");
        let readelf = readelf
            .arg("-SW")
            .arg(place.work().join("root/usr").join(file));
        Answer::of(readelf.output().unwrap()).out
    };
    let installed = sections("bin/backstory");
    assert!(!installed.contains(".symtab"), "{installed}");
    assert!(!installed.contains(".debug_line"), "{installed}");
    assert!(sections(SYMBOLS).contains(".symtab"));
    assert!(installed.contains(".gnu_debuglink"), "{installed}");
    let program = place.path("root/usr/bin/backstory");
    let version = std::process::Command::new(program)
        .arg("--version")
        .output();
    assert!(version.unwrap().status.success(), "it runs without symbols");
    make("uninstall");
    for file in files {
        assert!(!there(file), "{file} is still there");
    }
}
