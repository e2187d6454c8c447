//! Compares process trees by shape: the programs of each process with their arguments, the program
//! it was forked from, and its end. Process ids differ between runs and are not compared.

use std::collections::{BTreeMap, HashMap};

use super::normal::{Counts, normal};
use super::verdict::Verdict;
use crate::answer::ProcessLine;
use crate::strace::{End, Image, Process};

/// Most bytes of an argument that strace prints.
const ARGUMENT: usize = 512;

/// Compares `processes --json` with the traced processes.
pub fn compare(traced: &[Process], lines: &[ProcessLine], verdict: &mut Verdict) {
    let mut shapes: BTreeMap<String, Count> = BTreeMap::new();
    for (index, process) in traced.iter().enumerate() {
        verdict.compared += 1;
        let count = shapes
            .entry(traced_shape(traced, index, &mut verdict.ignored))
            .or_default();
        if process.traceless() {
            count.permitted += 1;
            // Its end may be unknown as well.
            let unended = traced_shape_unended(traced, index, &mut verdict.ignored);
            shapes.entry(unended).or_default().permitted += 1;
        } else {
            count.required += 1;
        }
    }
    for shape in recorded_shapes(lines, &mut verdict.ignored) {
        shapes.entry(shape).or_default().told += 1;
    }
    for (
        shape,
        Count {
            required,
            permitted,
            told,
        },
    ) in shapes
    {
        if told < required {
            verdict
                .processes
                .push(format!("missed {} ×: {shape}", required - told));
        } else if told > required + permitted {
            verdict.processes.push(format!(
                "invented {} ×: {shape}",
                told - required - permitted
            ));
        }
    }
}

/// Number of processes of one shape: required, also permitted, and recorded.
#[derive(Default)]
struct Count {
    required: usize,
    permitted: usize,
    told: usize,
}

fn traced_shape_unended(all: &[Process], index: usize, counts: &mut Counts) -> String {
    let mut unended = all.to_vec();
    unended[index].end = End::Unknown;
    traced_shape(&unended, index, counts)
}

fn traced_shape(all: &[Process], index: usize, counts: &mut Counts) -> String {
    let process = &all[index];
    let origin = match process.parent {
        None => "the command".to_owned(),
        Some(parent) => forked_from(all, parent, process.parent_image, counts),
    };
    let images: Vec<_> = process
        .images
        .iter()
        .map(|i| traced_image(i, counts))
        .collect();
    let end = match &process.end {
        End::Exited(status) => format!("exit {status}"),
        End::Killed(signal) => signal.clone(),
        End::Unknown => "unknown end".to_owned(),
    };
    shape(&origin, &images, &end)
}

fn forked_from(
    all: &[Process],
    parent: usize,
    image: Option<usize>,
    counts: &mut Counts,
) -> String {
    let process = &all[parent];
    match (image.and_then(|i| process.images.get(i)), process.parent) {
        (Some(image), _) => traced_image(image, counts),
        (None, Some(grandparent)) => forked_from(all, grandparent, process.parent_image, counts),
        (None, None) => "the command".to_owned(),
    }
}

fn traced_image(image: &Image, counts: &mut Counts) -> String {
    let argv: Vec<&[u8]> = image
        .argv
        .iter()
        .map(|(bytes, _)| bytes.as_slice())
        .collect();
    image_shape(&image.path, &argv, counts)
}

/// One shape per process: the epochs of one process follow each other from the one that was forked.
fn recorded_shapes(lines: &[ProcessLine], counts: &mut Counts) -> Vec<String> {
    let by_id: HashMap<u64, &ProcessLine> = lines.iter().map(|l| (l.id, l)).collect();
    let parent = |line: &ProcessLine| line.parent_id.and_then(|id| by_id.get(&id)).copied();
    let next: HashMap<u64, &ProcessLine> = lines
        .iter()
        .filter(|l| continues(l, parent(l)))
        .filter_map(|l| Some((l.parent_id?, l)))
        .collect();
    let mut shapes = Vec::new();
    for first in lines.iter().filter(|l| !continues(l, parent(l))) {
        let mut origin = parent(first);
        while let Some(line) = origin.filter(|l| !is_program(l)) {
            origin = parent(line);
        }
        let origin = origin.map_or_else(|| "the command".to_owned(), |l| recorded_image(l, counts));
        let (mut images, mut last) = (Vec::new(), first);
        loop {
            if is_program(last) {
                images.push(recorded_image(last, counts));
            }
            match next.get(&last.id) {
                Some(line) => last = line,
                None => break,
            }
        }
        let end = match (last.exit, last.signal) {
            (Some(status), _) => format!("exit {status}"),
            (None, Some(signal)) => signal_name(signal),
            (None, None) => "unknown end".to_owned(),
        };
        shapes.push(shape(&origin, &images, &end));
    }
    shapes
}

/// True if the line is a later epoch of its parent line's process.
fn continues(line: &ProcessLine, parent: Option<&ProcessLine>) -> bool {
    parent.is_some_and(|p| p.pid == line.pid && line.epoch == p.epoch + 1)
}

/// Epoch 0 is a fork child before its exec, or without one.
fn is_program(line: &ProcessLine) -> bool {
    line.epoch > 0 && line.exec_path.is_some()
}

fn recorded_image(line: &ProcessLine, counts: &mut Counts) -> String {
    let argv: Vec<&[u8]> = line.argv.iter().map(|a| a.0.as_slice()).collect();
    image_shape(line.exec_path.as_ref().map_or(b"", |p| &p.0), &argv, counts)
}

fn image_shape(path: &[u8], argv: &[&[u8]], counts: &mut Counts) -> String {
    // The kernel writes the names of memory files like paths.
    let path = if path.starts_with(b"/memfd:") {
        &path[1..]
    } else {
        path
    };
    let mut text = String::from_utf8_lossy(&normal(path, counts).unwrap_or_default()).into_owned();
    for argument in argv {
        let cut = &argument[..argument.len().min(ARGUMENT)];
        let cut = normal(cut, counts).unwrap_or_default();
        text.push(' ');
        text.push_str(&String::from_utf8_lossy(&cut).escape_debug().to_string());
    }
    text
}

fn shape(origin: &str, images: &[String], end: &str) -> String {
    let programs = if images.is_empty() {
        "(no exec)".to_owned()
    } else {
        images.join(" ⇒ ")
    };
    format!("[{programs}] from [{origin}], {end}")
}

/// Name of a signal as strace prints it.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 25] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
    ];
    let name = usize::try_from(signal - 1).ok().and_then(|i| NAMES.get(i));
    name.map_or_else(|| format!("signal {signal}"), |n| (*n).to_owned())
}
