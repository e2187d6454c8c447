//! How well the log of each tool agrees with backstory's own record of the same command.
//!
//! The guide has a table of recall and precision (`docs/howto/import.md`). This test measures the
//! figures of the table. Uses that are only possible count.

use super::Desk;
use super::audit::LINE;
use super::documents::{document, import};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The facts of a run that are compared.
struct Facts {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
    programs: BTreeSet<String>,
}

/// The names by which the files of both runs are compared.
#[derive(Clone, Copy)]
enum Names {
    /// Paths below the working directory.
    Paths,
    /// Last parts: the tool puts files into directories of its own.
    Last,
}

/// The directory in which the tools ran.
const WORDS: &str = "/tmp/words";

/// The facts of the latest run about files below `work`.
fn facts(desk: &Desk, work: &str, names: Names) -> Facts {
    let files = desk.json(&["files", "--all", "--json"]);
    let used = |access: &[&str]| -> BTreeSet<String> {
        let all = files.as_array().unwrap().iter();
        let has = |file: &&Value| {
            let mut all = file["access"].as_array().unwrap().iter();
            all.any(|one| access.contains(&one.as_str().unwrap()))
        };
        let paths = all.filter(has).map(|file| file["path"].as_str().unwrap());
        let below = paths.filter_map(|path| path.strip_prefix(work)?.strip_prefix('/'));
        let named = below.map(|path| match names {
            Names::Paths => path,
            Names::Last => path.rsplit('/').next().unwrap(),
        });
        // The script of the line is no file of it.
        let named = named.filter(|path| *path != "words.sh");
        named.map(str::to_owned).collect()
    };
    let processes = desk.json(&["processes", "--json"]);
    let argv = processes.as_array().unwrap().iter().map(|one| &one["argv"]);
    let is_shell = |argv: &Value| {
        let program = argv[0].as_str().unwrap_or_default();
        ["", "sh", "bash", "/bin/sh"].contains(&program)
    };
    Facts {
        read: used(&["read"]),
        written: used(&["write", "rename"]),
        programs: argv
            .filter(|argv| !is_shell(argv))
            .map(Value::to_string)
            .collect(),
    }
}

/// The facts of backstory's record of a line.
fn own(input: &str, line: &str, names: Names) -> Facts {
    let desk = Desk::new();
    desk.write(input, b"b\na\n");
    desk.backstory(&["record", "--wait", "--", "sh", "-c", line.trim()]);
    facts(&desk, desk.work().to_str().unwrap(), names)
}

/// The facts of the log of a tool.
fn of_tool(format: &str, name: &str, options: &[&str], work: &str, names: Names) -> Facts {
    let desk = Desk::new();
    import(&desk, format, name, options);
    facts(&desk, work, names)
}

/// The facts of the records of a workflow engine, which are many files.
fn of_engine(format: &str, line: &str, names: Names) -> Facts {
    let desk = Desk::new();
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/documents");
    let copied = desk.shell(&line.replace("DOCUMENTS", documents.to_str().unwrap()));
    let text = String::from_utf8(copied.stdout).unwrap();
    let args = [&["import", format][..], &text.lines().collect::<Vec<_>>()].concat();
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
    let mut found = facts(&desk, WORDS, names);
    // Snakemake's files are beside its directory.
    let here = facts(&desk, desk.work().to_str().unwrap(), names);
    found.read.extend(here.read);
    found.written.extend(here.written);
    found
}

/// What Spark read and wrote, by datasets: a directory is one.
fn own_of_spark() -> Facts {
    let files: Value = serde_json::from_str(include_str!("documents/spark/own.json")).unwrap();
    let used = |access: &str| -> BTreeSet<String> {
        let all = files.as_array().unwrap().iter();
        let has = |file: &&Value| file["access"].to_string().contains(access);
        let paths = all.filter(has).map(|file| file["path"].as_str().unwrap());
        let below = paths.filter_map(|path| path.strip_prefix("/tmp/words/"));
        let dataset = |path: &str| path.split('/').next().unwrap().to_owned();
        below.map(dataset).collect()
    };
    Facts {
        read: used("\"read\""),
        written: used("\"rename\""),
        programs: BTreeSet::new(),
    }
}

/// Recall and precision, as the table has them.
fn cell(wanted: &BTreeSet<String>, found: &BTreeSet<String>) -> String {
    let common = wanted.intersection(found).count() as f64;
    let part = |of: &BTreeSet<String>| match of.len() {
        0 => "–".to_owned(),
        all => format!("{:.2}", common / all as f64),
    };
    format!("{}, {}", part(wanted), part(found))
}

fn row(format: &str, tool: &str, own: &Facts, found: &Facts) -> String {
    format!(
        "| `{format}` | {tool} | {} | {} | {} |",
        cell(&own.read, &found.read),
        cell(&own.written, &found.written),
        cell(&own.programs, &found.programs)
    )
}

/// The commands of the two workflows.
const STEPS: &str = "tr a-z A-Z < in.txt > upper.txt; wc -l upper.txt > count.txt";
const JOBS: &str = "tr a-z A-Z < in.txt > loud.txt; wc -l loud.txt > count.txt";
const TASKS: &str = "tr a-z A-Z < in.txt > loud.txt; wc -l loud.txt > lines.count; cat in.txt";

#[test]
fn the_guides_table_has_the_measured_recall_and_precision_of_each_format() {
    use Names::{Last, Paths};
    let short = include_str!("documents/line.sh");
    let (line, short) = (own("in", LINE, Paths), own("in", short, Paths));
    let at = ["--cwd", WORDS];
    let tool = |format, name, options: &[&str]| of_tool(format, name, options, WORDS, Paths);
    let steps = own("in.txt", STEPS, Last);
    let documented = |format, name| of_tool(format, name, &["--cwd", "/"], "", Last);
    let mut rows = vec![
        row(
            "auditd",
            "auditd 3.0.9",
            &line,
            &tool("auditd", "audit/line.log", &[]),
        ),
        row(
            "bpftrace",
            "bpftrace 0.17",
            &line,
            &tool("bpftrace", "bpftrace/line.log", &at),
        ),
        row(
            "perf",
            "perf 6.12",
            &line,
            &tool("perf", "perf/line.log", &at),
        ),
        row(
            "probe",
            "PROBE 53c5027",
            &short,
            &tool("probe", "probe/line.log", &[]),
        ),
        row(
            "reprozip",
            "ReproZip 1.3.2",
            &short,
            &tool("reprozip", "trace.rpz", &[]),
        ),
        row(
            "prov-json",
            "CWLProv of cwltool 3.1",
            &steps,
            &documented("prov-json", "cwlprov.json"),
        ),
        row(
            "ro-crate",
            "runcrate 0.6.2",
            &steps,
            &documented("ro-crate", "crate.json"),
        ),
        row(
            "openlineage",
            "Spark 3.5.8 with openlineage-spark 1.53.0",
            &own_of_spark(),
            // The events have jobs, and no programs.
            &Facts {
                programs: BTreeSet::new(),
                ..tool("openlineage", "spark/events.jsonl", &[])
            },
        ),
        row(
            "snakemake",
            "Snakemake 9.27.1",
            &own("in.txt", JOBS, Last),
            &of_engine(
                "snakemake",
                "mkdir -p .snakemake && cp -r DOCUMENTS/snakemake .snakemake/metadata && \
                 ls .snakemake/metadata/*",
                Last,
            ),
        ),
        row(
            "nextflow",
            "Nextflow 24.10.0",
            &own("in.txt", TASKS, Last),
            &of_engine(
                "nextflow",
                "cp -r DOCUMENTS/nextflow/run/. . && find . -type f",
                Last,
            ),
        ),
    ];
    if let Some(desk) = Desk::with_strace("recall and precision of strace") {
        desk.write("in", b"b\na\n");
        let log = desk.trace("-f -y -ttt -s 4096", LINE.trim());
        desk.import(&[log], &[]);
        let found = facts(&desk, desk.work().to_str().unwrap(), Paths);
        rows.push(row("strace", "strace -f -y -ttt -s 4096", &line, &found));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/import.md");
    let page = std::fs::read_to_string(page).unwrap();
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "measured now:\n{}", rows.join("\n"));
}

/// The datasets of Spark lead on to each other.
#[test]
fn the_events_of_spark_lead_from_a_result_to_its_sources() {
    let desk = Desk::new();
    let path = document(&desk, "spark/events.jsonl");
    let output = desk.backstory(&["import", "openlineage", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    super::documents::behind(
        &desk,
        "/tmp/words/counts",
        &[
            "/tmp/words/loud",
            "/tmp/words/other.csv",
            "/tmp/words/in.csv",
        ],
    );
}
