//! What `rerun` refuses, and which files it takes as they are, in words.

use backstory_replay::rerun::PlannedStep;
use backstory_replay::rerun::kept_files::{KeptBecause, KeptFile};
use backstory_replay::rerun::refusals::Refusal;

use super::Plan;
use crate::commands::near;
use crate::error::one_line;
use crate::text::line::cut;

/// The most columns of a command in a sentence.
const COMMAND: usize = 60;

/// The sentence on the first refusal. `None` if nothing is refused.
pub fn first(plan: &Plan<'_>) -> Option<String> {
    let (at, refusal) = plan.refusals.first()?;
    let more = match plan.refusals.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more: see --dry-run)"),
    };
    let sentence = sentence(&plan.work.steps[*at], refusal);
    Some(format!("nothing was run: {sentence}{more}"))
}

/// Why a step does not run, and what helps.
pub fn sentence(step: &PlannedStep, refusal: &Refusal) -> String {
    let by = cut(&command(step), COMMAND);
    match refusal {
        Refusal::Changed(path, run) => {
            let path = near(path);
            format!(
                "{path} is not as run {run} left it (edited, replaced or brought back), and {by} would overwrite it. Copy it away, or give --overwrite: `backstory undo {path}` gets it again"
            )
        }
        Refusal::OtherCommand(path, run) => {
            let path = near(path);
            format!(
                "{path} was changed by run {run} since, and {by} would overwrite it. Copy it away, or give --overwrite: `backstory undo {path}` gets it again"
            )
        }
        Refusal::SeveralRuns(path) => format!(
            "{by} joins commands of several runs, one of which edits {}: repeat the stale one yourself under backstory record",
            near(path)
        ),
        Refusal::EditLost(path) => format!(
            "{} is outdated, and cannot be made again: {by} edits it, and the version with which it began is not kept. Run the command yourself under backstory record",
            near(path)
        ),
        Refusal::InputGone(what) => format!(
            "the standard input of {by} was {what}, which is gone: give it again with `backstory rerun … < FILE`"
        ),
        Refusal::InputShared(path) => format!(
            "{by} shares its standard input {} with other commands of its run, and where it began to read is not recorded: run the whole command again under backstory record",
            near(path)
        ),
        Refusal::InputMissing(path) => format!(
            "the standard input {} of {by} does not exist any more: make it, or give another with `backstory rerun … < FILE`",
            near(path)
        ),
    }
}

/// Why a file is taken as it is.
pub fn kept(file: &KeptFile) -> String {
    let path = near(&file.path);
    match &file.why {
        KeptBecause::Changed(run) => {
            format!("{path} is taken as it is: it was changed since run {run} made it")
        }
        KeptBecause::Edit(command) => format!(
            "{path} is outdated and taken as it is: {} edits it, which is repeated only by `backstory rerun {path}`",
            cut(command, COMMAND)
        ),
    }
}

/// The sentence on a step that ended without an error and did not make its outputs. `left`: the end
/// of the sentence, on later steps.
pub fn not_made(step: &PlannedStep, paths: &[Vec<u8>], left: &str) -> String {
    format!(
        "{} did not make {}, although it ended without an error: {} as before. Look at what the command does now, or run it yourself under backstory record{left}",
        cut(&command(step), COMMAND),
        some(paths),
        match paths.len() {
            1 => "the file is",
            _ => "the files are",
        },
    )
}

/// The first of some paths, and how many more there are.
pub fn some(paths: &[Vec<u8>]) -> String {
    match paths {
        [] => String::new(),
        [one] => near(one),
        [one, more @ ..] => format!("{} (+{})", near(one), more.len()),
    }
}

/// The command of a step in one line, from its program on.
pub fn command(step: &PlannedStep) -> String {
    one_line(&step.headline.replace('\n', "; "))
}
