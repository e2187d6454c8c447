//! Steps for engines that run each step in an empty directory of its own (CWL, Nextflow).
//!
//! In: the steps of a view. Out: a [`SandboxLayout`], which says for each step which files are put
//! where, and how its command is written to work there.
//!
//! Invariant: below [`SandboxLayout::root`], a file has the same name from a step's directory as it
//! had from the root in the recording. Absolute names of files below the root become relative.
//! Files elsewhere stay in their place. Absent on purpose: names inside of scripts are not
//! rewritten.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;

use crate::{Error, Result, View};
use backstory_workflow::paths::{parent, relative};
use backstory_workflow::shell::quote;
use backstory_workflow::steps::{Line, Step};

/// The steps of a view, each for a directory of its own.
#[derive(Debug)]
pub struct SandboxLayout {
    /// The base of all names: the run's directory, or the deepest directory above it and all
    /// outputs.
    pub root: Bytes,
    /// Files that no step makes.
    pub sources: Vec<SourceFile>,
    /// The steps, in the order of the view.
    pub cells: Vec<SandboxStep>,
}

/// A file that existed before the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// A name for a variable: letters, digits and `_`, unique among sources and outputs.
    pub id: String,
    /// Absolute path.
    pub path: String,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStep {
    /// The shell commands of the step.
    pub script: String,
    /// The script needs bash.
    pub bash: bool,
    /// Its input files.
    pub inputs: Vec<StepInput>,
    /// Its output files.
    pub outputs: Vec<StepOutput>,
}

/// A file that a step reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInput {
    /// Its [`SourceFile::id`] or [`StepOutput::id`].
    pub id: String,
    /// The number of the step that makes it.
    pub made_by: Option<usize>,
    /// Its name from the step's directory; `None` for a file elsewhere, which the step reads in its
    /// place.
    pub place: Option<String>,
}

/// A file that a step makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutput {
    /// A name for a variable, as [`SourceFile::id`].
    pub id: String,
    /// Its name from the step's directory.
    pub place: String,
}

impl SandboxLayout {
    /// Lays out `steps`, which are those of `view`, for `format`.
    ///
    /// # Errors
    ///
    /// If the engines cannot express a file's name, or the outputs have no common directory.
    pub fn of(view: &View, steps: &[Step], format: &'static str) -> Result<SandboxLayout> {
        let root = root(view, steps, format)?;
        let mut names = Names::default();
        let mut made: HashMap<&Bytes, (usize, String)> = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            for path in &step.outputs {
                made.insert(path, (at, names.variable(path)));
            }
        }
        let mut sandbox = SandboxLayout {
            root,
            sources: Vec::new(),
            cells: Vec::new(),
        };
        let mut known: HashMap<&Bytes, String> = HashMap::new();
        for step in steps {
            let mut cell = sandbox.bare(step, format)?;
            for path in &step.inputs {
                let (id, made_by) = match made.get(path) {
                    Some((maker, id)) => (id.clone(), Some(*maker)),
                    None => {
                        let id = match known.get(path) {
                            Some(id) => id.clone(),
                            None => {
                                let (id, text) =
                                    (names.variable(path), utf8(path, format)?.to_owned());
                                known.insert(path, id.clone());
                                let path = text;
                                sandbox.sources.push(SourceFile {
                                    id: id.clone(),
                                    path,
                                });
                                id
                            }
                        };
                        (id, None)
                    }
                };
                let place = sandbox.place(path, format)?;
                cell.inputs.push(StepInput { id, made_by, place });
            }
            for (output, path) in cell.outputs.iter_mut().zip(&step.outputs) {
                output.id.clone_from(&made[path].1);
            }
            sandbox.cells.push(cell);
        }
        Ok(sandbox)
    }

    /// A step without inputs, whose outputs have no ids yet. `step` may be a template of several
    /// steps.
    pub fn bare(&self, step: &Step, format: &'static str) -> Result<SandboxStep> {
        let mut outputs = Vec::new();
        for path in &step.outputs {
            // The root is above all outputs.
            let place = self.place(path, format)?.unwrap_or_default();
            outputs.push(StepOutput {
                id: String::new(),
                place,
            });
        }
        let script = self.script(step);
        Ok(SandboxStep {
            bash: script.contains("$'"),
            script,
            inputs: Vec::new(),
            outputs,
        })
    }

    /// A file's name from the root; `None` if the file lies elsewhere.
    pub fn place(&self, path: &[u8], format: &'static str) -> Result<Option<String>> {
        let path = utf8(path, format)?;
        let below = path.as_bytes().strip_prefix(&*self.root);
        let below = below
            .and_then(|rest| rest.strip_prefix(b"/"))
            .map(String::from_utf8_lossy);
        match below {
            // Engines interpret these characters as patterns or expressions.
            Some(name)
                if name.contains(['*', '?', '[', ']', '{', '}', '\\', '\n'])
                    || name.contains("$(") =>
            {
                Err(unsayable(path.as_bytes(), format))
            }
            Some(name) => Ok(Some(name.into_owned())),
            None => Ok(None),
        }
    }

    fn script(&self, step: &Step) -> String {
        let mut directories: BTreeSet<&[u8]> =
            step.outputs.iter().map(|path| parent(path)).into_tree();
        directories.extend(step.lines.iter().map(|line| &*line.cwd));
        let own = |directory: &[u8]| {
            let below = |own: &Bytes| {
                directory
                    .strip_prefix(&**own)
                    .is_some_and(|r| r.is_empty() || r[0] == b'/')
            };
            step.own_directories.iter().any(below)
        };
        let needed: Vec<String> = directories
            .into_iter()
            .filter(|directory| !own(directory))
            .map(|directory| relative(directory, &self.root))
            .filter(|name| *name != b"." && !name.starts_with(b"/"))
            .map(quote)
            .collect();
        let mut lines = Vec::new();
        if !needed.is_empty() {
            lines.push(format!("mkdir -p {}", needed.join(" ")));
        }
        let alone = step.lines.len() == 1 && lines.is_empty();
        lines.extend(
            step.lines
                .iter()
                .map(|line| match (self.line(line), alone) {
                    (text, true) => text,
                    // A change of the shell itself must not reach the next line.
                    (text, false) if step.lines.len() > 1 || line.is_shell() => {
                        format!("( {text} )")
                    }
                    (text, false) => text,
                }),
        );
        lines.join(" &&\n")
    }

    fn line(&self, line: &Line) -> String {
        let cwd = relative(&line.cwd, &self.root);
        let depth = match cwd {
            b"." => 0,
            cwd => 1 + cwd.iter().filter(|&&byte| byte == b'/').count(),
        };
        let up = match depth {
            0 => ".".to_owned(),
            depth => vec![".."; depth].join("/"),
        };
        let text = line.shell(&self.root);
        match std::str::from_utf8(&self.root) {
            Ok(root) if !cwd.starts_with(b"/") => relocated(&text, root, &up),
            _ => text,
        }
    }
}

/// `text` with `up` for each mention of `root` at the begin of a word, or of a value within a word
/// (`--out=ROOT/x`, `-IROOT/x`).
fn relocated(text: &str, root: &str, up: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "'\"`=:,;()<>|&".contains(c);
    let mut out = String::new();
    let mut rest = 0;
    for (at, _) in text.match_indices(root) {
        let after = text[at + root.len()..].chars().next();
        let start = text[..at].rfind(ends).map_or(0, |end| end + 1);
        let before = &text[start..at];
        let option = before.starts_with('-') && !before.contains('/');
        if at >= rest && (before.is_empty() || option) && after.is_none_or(|c| c == '/' || ends(c))
        {
            out.push_str(&text[rest..at]);
            out.push_str(up);
            rest = at + root.len();
        }
    }
    out.push_str(&text[rest..]);
    out
}

/// The deepest directory above all outputs and the run's directory.
fn root(view: &View, steps: &[Step], format: &'static str) -> Result<Bytes> {
    let mut root: &[u8] = &view.base;
    for path in steps.iter().flat_map(|step| &step.outputs) {
        while root != b"/"
            && !path
                .strip_prefix(root)
                .is_some_and(|rest| rest.starts_with(b"/"))
        {
            root = parent(root);
        }
        if root == b"/" {
            return Err(Error::Unsayable {
                format,
                what: format!(
                    "{}, which has no directory in common with the rest",
                    quote(path)
                ),
                advice: "leave it out with --exclude, or use make, ninja, snakemake or shell",
            });
        }
    }
    Ok(root.into())
}

fn utf8<'p>(path: &'p [u8], format: &'static str) -> Result<&'p str> {
    std::str::from_utf8(path).map_err(|_| unsayable(path, format))
}

fn unsayable(path: &[u8], format: &'static str) -> Error {
    Error::Unsayable {
        format,
        what: format!("the file name {}", quote(path)),
        advice: "use snakemake or shell",
    }
}

/// The names given so far.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A name for a file's variable: the file's name, with a number if it is taken.
    fn variable(&mut self, path: &[u8]) -> String {
        let name = String::from_utf8_lossy(backstory_workflow::paths::base_name(path));
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        // No keyword of an engine begins with `f_`.
        let plain = format!("f_{plain}");
        let mut name = plain.clone();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_the_root_become_relative_and_others_stay() {
        let moved = |text| relocated(text, "/home/u/w", "..");
        assert_eq!(
            moved("sort /home/u/w/in > '/home/u/w/o u'"),
            "sort ../in > '../o u'"
        );
        assert_eq!(
            moved("cc -I/home/u/w/inc --to=/home/u/w"),
            "cc -I../inc --to=.."
        );
        for same in [
            "cat /mnt/home/u/w/in",
            "cat /home/u/w2/in",
            "cat x/home/u/w/in",
        ] {
            assert_eq!(moved(same), same);
        }
    }

    #[test]
    fn variables_are_distinct() {
        let mut names = Names::default();
        let all =
            [&b"/a/x.1"[..], b"/b/x.1", b"/x_1", b"/\xc3\xa4"].map(|path| names.variable(path));
        assert_eq!(all, ["f_x_1", "f_x_1_2", "f_x_1_3", "f__"]);
    }
}
