//! Programs that no tracer can watch, because they trace others, respond for others, or name files
//! in another root. Their operations are stated here instead.

use std::io;

use backstory_testkit::answer::{self, FileLine, Show};
use backstory_testkit::oracle::{Bench, Case, program, sh};

/// A case and its expected record.
pub struct Stated {
    /// The command.
    pub case: Case,
    /// Options of `record`.
    pub options: &'static [&'static str],
    /// True if the recorded command prints, returns and leaves the same as alone.
    pub same: bool,
    /// Beginnings of all reasons why the run is not complete.
    pub because: &'static [&'static str],
    /// Part of the line on stderr after the command has ended. Empty for no line.
    pub warned: &'static str,
    /// Expected records: a word of `files`, and a path below the case's directory.
    pub told: &'static [(&'static str, &'static str)],
}

/// gdb writes breakpoints into its tracee, and sets the program counter after each.
const BREAKPOINTS: &[&str] = &["PTRACE_SETREGS was used", "/proc/PID/mem was used"];

const fn traces(
    case: Case,
    because: &'static [&'static str],
    told: &'static [(&'static str, &'static str)],
) -> Stated {
    Stated {
        case,
        options: &[],
        same: true,
        because,
        warned: match because {
            [] => "",
            [first, ..] => first,
        },
        told,
    }
}

/// All cases.
pub const STATED: &[Stated] = &[
    traces(
        program("ptracer", &["$FIX/ptracer"]),
        &["PTRACE_POKEDATA was used"],
        &[("read", "b"), ("write", "traced")],
    ),
    traces(
        sh(
            "strace-of-program",
            "strace -f -o trace sh -c 'cat a >s1; cp b s2'; cat s1 s2",
        )
        .needs(&["strace"])
        .restless(),
        &[],
        &[
            ("read", "a"),
            ("write", "s1"),
            ("write", "s2"),
            ("write", "trace"),
        ],
    ),
    traces(
        program(
            "gdb-of-program",
            &[
                "gdb", "-q", "-nx", "-batch", "-ex", "run", "--args", "/bin/cp", "a", "by-gdb",
            ],
        )
        .needs(&["gdb"])
        .restless(),
        BREAKPOINTS,
        &[("read", "a"), ("write", "by-gdb")],
    ),
    // A tracer names files as the traced process sees them, backstory as they are named outside.
    Stated {
        case: program("other-roots", &["$FIX/roots"]),
        options: &[],
        same: true,
        because: &[],
        warned: "",
        told: &[
            ("read", "d/x"),
            ("write", "d/in-chroot"),
            ("rename", "d/renamed"),
            ("write", "d/by-link"),
            ("missing", "d/a"),
            ("read", "a"),
            ("write", "new/pivoted"),
            ("read", "new/pivoted"),
            ("delete", "new/old"),
            ("write", "new/again"),
        ],
    },
    // strace's own filter is below the program's: a trapped call never gets there.
    Stated {
        case: program("trap-handler", &["$FIX/trap_handler"]),
        options: &[],
        same: true,
        because: &[],
        warned: "",
        told: &[("read", "a"), ("write", "trapped"), ("missing", "none")],
    },
    Stated {
        case: program("own-listener", &["$FIX/own_listener"]),
        options: &[],
        same: false,
        because: &[],
        warned: "own_listener a seccomp listener (EBUSY)",
        told: &[],
    },
    Stated {
        case: program("own-listener-unguarded", &["$FIX/own_listener"]),
        options: &["--guard=off"],
        same: true,
        because: &[],
        warned: "",
        told: &[("write", "listened")],
    },
    Stated {
        case: program("jumps-strict", &["$FIX/jumps"]),
        options: &["--guard=strict"],
        same: true,
        because: &[],
        warned: "",
        told: &[("write", "evaded")],
    },
];

/// Errors in the account of a case that is recorded with `more` options beside its own.
pub fn complaints(bench: &Bench, stated: &Stated, more: &[&str]) -> io::Result<Vec<String>> {
    let case = &stated.case;
    let plain = bench.plain(case)?;
    let (mut recorded, store) = bench.recorded(case, &[stated.options, more].concat())?;
    let mut wrong = Vec::new();
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    let ours = said
        .lines()
        .rfind(|line| line.starts_with("backstory: "))
        .unwrap_or_default();
    if ours.is_empty() != stated.warned.is_empty() || !ours.contains(stated.warned) {
        wrong.push(format!("it says {ours:?}"));
    }
    recorded
        .stderr
        .truncate(said.len() - if ours.is_empty() { 0 } else { ours.len() + 1 });
    let differs = match case.restless {
        true => recorded.code() != plain.code() || recorded.files.len() != plain.files.len(),
        false => recorded != plain,
    };
    if differs == stated.same {
        wrong.push(format!("alone {plain:?}\nrecorded {recorded:?}"));
    }
    let show: Show = answer::read(&bench.ask(&store, &["show", "--json"])?)?;
    let told = &show.incomplete_because;
    let each = stated
        .because
        .iter()
        .all(|b| told.iter().any(|t| t.starts_with(b)));
    if !each || told.len() != stated.because.len() {
        wrong.push(format!("not complete because {told:?}"));
    }
    let files: Vec<FileLine> = answer::read(&bench.ask(&store, &["files", "--json"])?)?;
    for (word, name) in stated.told {
        let end = format!("/{}/{name}", case.name);
        let told = |line: &FileLine| {
            let words = line.access.iter().map(|w| format!("{w:?}").to_lowercase());
            line.path.0.ends_with(end.as_bytes()) && words.into_iter().any(|w| w == *word)
        };
        if !files.iter().any(told) {
            wrong.push(format!("missed: {word} {name}"));
        }
    }
    Ok(wrong)
}
