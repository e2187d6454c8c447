//! `status` tells the truth: random pipelines, edits and runs, compared with a re-execution.
//!
//! A case records some steps that make files from files, changes some files, and asks. For each
//! result, `status` must say `current` exactly if no step behind it has another input, script or
//! output than when it ran last. Then these hold, too, and are checked:
//!
//! - A current result has the bytes that a re-execution from the present sources gives.
//! - `rerun --dry-run` has steps to run exactly for the results that are not current.
//! - After `rerun` of each result all are current, and have the bytes of the re-execution.
//!
//! `BACKSTORY_CASES` is the number of cases, `BACKSTORY_SEED` the seed of the first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::Place;

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn text(&mut self) -> String {
        let count = 3 + self.below(4);
        let word = |random: &mut Random| format!("{}{}\n", random.below(40), "xy");
        (0..count).map(|_| word(self)).collect()
    }
}

/// One recorded command.
#[derive(Debug, Clone)]
struct Made {
    /// The line, with `record` before the command that is recorded.
    line: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// The inputs of each output, in the order of `outputs`.
    sources: Vec<Vec<String>>,
    /// The contents of inputs and outputs when it ran last.
    then: BTreeMap<String, String>,
}

struct Case {
    place: Place,
    random: Random,
    steps: Vec<Made>,
    sources: Vec<String>,
}

const FILTERS: [&str; 6] = [
    "sort",
    "sort -r",
    "head -n 3",
    "tr 1-5 a-e",
    "cat",
    "tail -n 2",
];

impl Case {
    fn new(seed: u64) -> Case {
        let mut case = Case {
            place: Place::new(),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            steps: Vec::new(),
            sources: Vec::new(),
        };
        for number in 0..3 {
            let (name, text) = (format!("s{number}"), case.random.text());
            case.place.write_aged(&name, &text);
            case.sources.push(name);
        }
        for number in 0..3 + case.random.below(3) {
            let step = case.invent(number);
            case.steps.push(step);
        }
        for at in 0..case.steps.len() {
            case.execute(at);
        }
        case
    }

    fn filter(&mut self) -> &'static str {
        FILTERS[self.random.below(FILTERS.len())]
    }

    /// A step that reads files of before.
    fn invent(&mut self, number: usize) -> Made {
        let made = self.steps.iter().flat_map(|step| step.outputs.clone());
        let sources = self.sources.iter().filter(|name| name.starts_with('s'));
        let known: Vec<String> = sources.cloned().chain(made).collect();
        let (a, b) = (
            known[self.random.below(known.len())].clone(),
            known[self.random.below(known.len())].clone(),
        );
        let (f, g) = (self.filter(), self.filter());
        let (one, two) = (format!("o{number}"), format!("p{number}"));
        let (line, outputs, sources) = match self.random.below(6) {
            0 => {
                let line = format!("record sh -c '{f} < {a} > {one}'");
                (line, vec![one], vec![vec![a]])
            }
            1 => {
                let line = format!("record sort {a} > {one}");
                (line, vec![one], vec![vec![a]])
            }
            2 => {
                let line = format!("record sh -c '{f} < {a} > {one}; cat {one} {b} | {g} > {two}'");
                (line, vec![one.clone(), two], vec![vec![a], vec![one, b]])
            }
            3 => {
                let line = format!("record {f} < {a} > {one}");
                (line, vec![one], vec![vec![a]])
            }
            _ => {
                let script = format!("t{number}.sh");
                let tmp = format!("tmp{number}");
                let text = format!(
                    "cat {a} {b} > {tmp}\n{f} < {tmp} > {one}\nrm {tmp}\n{g} < {a} > {two}\n"
                );
                self.place.write_aged(&script, &text);
                self.sources.push(script.clone());
                let line = format!("record sh {script}");
                let sources = vec![vec![a.clone(), b, script.clone()], vec![a, script]];
                (line, vec![one, two], sources)
            }
        };
        let all: BTreeSet<&String> = sources.iter().flatten().collect();
        Made {
            line,
            inputs: all.into_iter().cloned().collect(),
            outputs,
            sources,
            then: BTreeMap::new(),
        }
    }

    fn content(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.place.path(name)).ok()
    }

    fn remember(&mut self, at: usize) {
        let step = &self.steps[at];
        let names = step.inputs.iter().chain(&step.outputs);
        let then = names.filter_map(|name| Some((name.clone(), self.content(name)?)));
        self.steps[at].then = then.collect();
    }

    fn execute(&mut self, at: usize) {
        self.place.sh(&self.steps[at].line);
        self.remember(at);
    }

    /// The steps behind a file, with the files that count: inputs of each, and outputs that another
    /// one reads.
    fn is_current(&self, name: &str) -> bool {
        let Some(at) = self
            .steps
            .iter()
            .position(|step| step.outputs.iter().any(|o| o == name))
        else {
            return true;
        };
        let step = &self.steps[at];
        let number = step.outputs.iter().position(|o| o == name).unwrap();
        let unchanged = |name: &String| step.then.get(name) == self.content(name).as_ref();
        unchanged(&name.to_owned())
            && step.sources[number]
                .iter()
                .all(|input| unchanged(input) && self.is_current(input))
    }

    /// The results of all steps, executed in their order in another directory.
    fn truth(&self) -> BTreeMap<String, Option<String>> {
        let copy = tempfile::tempdir().unwrap();
        for name in &self.sources {
            fs::copy(self.place.path(name), copy.path().join(name)).unwrap();
        }
        let read = |name: &String| {
            (
                name.clone(),
                fs::read_to_string(copy.path().join(name)).ok(),
            )
        };
        for step in &self.steps {
            run_alone(copy.path(), &step.line);
        }
        self.steps
            .iter()
            .flat_map(|step| &step.outputs)
            .map(read)
            .collect()
    }

    fn results(&self) -> Vec<String> {
        let all = self.steps.iter().flat_map(|step| step.outputs.clone());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Changes something. The result says what.
    fn edit(&mut self) -> String {
        let results = self.results();
        let result = results[self.random.below(results.len())].clone();
        let source = self.sources[self.random.below(self.sources.len())].clone();
        match self.random.below(9) {
            0 => {
                self.place.sh(&format!("touch {source}"));
                format!("touch {source}")
            }
            1 | 2 => self.edit_source(&source),
            3 => {
                let _ = fs::remove_file(self.place.path(&result));
                format!("rm {result}")
            }
            4 | 5 => {
                let name = if self.random.below(2) == 0 {
                    source
                } else {
                    result
                };
                if let Some(text) = self.content(&name) {
                    fs::remove_file(self.place.path(&name)).unwrap();
                    self.place.write_aged(&name, &text);
                }
                format!("remake {name}")
            }
            6 => {
                self.place.write_aged(&result, "by hand\n");
                format!("overwrite {result}")
            }
            7 => {
                self.place.write_aged("unrelated", "text\n");
                "unrelated".to_owned()
            }
            _ => {
                let at = self.random.below(self.steps.len());
                if self.steps[at]
                    .inputs
                    .iter()
                    .all(|name| self.content(name).is_some())
                {
                    self.execute(at);
                }
                format!("execute {at}")
            }
        }
    }

    fn edit_source(&mut self, source: &str) -> String {
        let text = match source.ends_with(".sh") {
            true => {
                let (text, filter) = (self.content(source).unwrap(), self.filter());
                let other = format!("{filter} < tmp");
                let line = text.lines().nth(1).unwrap().to_owned();
                let end = line.split_once("tmp").unwrap().1;
                text.replace(&line, &format!("{other}{end}"))
            }
            false => self.random.text(),
        };
        self.place.write_aged(source, &text);
        format!("edit {source}")
    }

    fn check(&self, done: &[String]) {
        let results = self.results();
        let names: Vec<&str> = results.iter().map(String::as_str).collect();
        let states = self.place.file_states(&names);
        let truth = self.truth();
        for (name, state) in names.iter().zip(&states) {
            let about = || format!("{name}: {state}\n{done:#?}\n{:#?}", self.steps);
            let current = state == "current";
            assert_eq!(current, self.is_current(name), "{}", about());
            assert!(
                !current || self.content(name) == truth[*name],
                "{}",
                about()
            );
            let plan = self.place.run(&["rerun", "--dry-run", name]);
            assert_eq!(plan.err, "", "{}", about());
            assert_eq!(plan.status == 0, current, "{}\n{}", plan.out, about());
        }
    }

    fn rerun(&mut self, done: &[String]) {
        for name in self.results() {
            // Some results were overwritten by hand.
            let answer = self.place.run(&["rerun", "--overwrite", &name]);
            assert_eq!(
                answer.status, 0,
                "{name}: {answer:?}\n{done:#?}\n{:#?}",
                self.steps
            );
        }
        let truth = self.truth();
        for name in self.results() {
            let about = format!("{name}\n{done:#?}\n{:#?}", self.steps);
            assert_eq!(self.content(&name), truth[&name], "{about}");
        }
        for at in 0..self.steps.len() {
            self.remember(at);
        }
        self.check(done);
    }
}

/// Executes a line without recording it.
fn run_alone(directory: &Path, line: &str) {
    let line = format!("record() {{ \"$@\"; }}; {line}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(directory);
    assert!(shell.output().unwrap().status.success());
}

#[test]
fn status_and_rerun_agree_with_a_re_execution_of_random_pipelines() {
    agree(2);
}

#[test]
#[ignore = "a minute, as the same test of fewer pipelines"]
fn status_and_rerun_agree_with_a_re_execution_of_many_random_pipelines() {
    agree(12);
}

/// `cases` is their number if `BACKSTORY_CASES` is not set.
fn agree(cases: u64) {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().unwrap())
    };
    let first = number("BACKSTORY_SEED", 1);
    for seed in first..first + number("BACKSTORY_CASES", cases) {
        let mut case = Case::new(seed);
        let mut done = vec![format!("seed {seed}")];
        case.check(&done);
        for _ in 0..2 {
            for _ in 0..1 + case.random.below(3) {
                let edit = case.edit();
                done.push(edit);
            }
            case.check(&done);
            case.rerun(&done);
        }
    }
}
