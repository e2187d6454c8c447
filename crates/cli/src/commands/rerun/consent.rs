//! Asks the user before steps run that do more than make files of the project.
//!
//! On a terminal the plan is shown, and only `y` or `yes` agrees. Without a terminal `rerun`
//! refuses unless `--yes` is given.

use super::{Plan, plan_text};
use crate::args::replay::RerunArgs;
use crate::commands::answer;
use crate::consent;
use crate::error::Failure;
use crate::text::style::Style;

/// True if the user agrees, or need not be asked.
///
/// # Errors
///
/// If the user cannot be asked.
pub fn is_given(plan: &Plan<'_>, args: &RerunArgs) -> Result<bool, Failure> {
    let kinds = plan_text::kinds(plan);
    let Some(first) = kinds.first() else {
        return Ok(true);
    };
    if args.yes {
        return Ok(true);
    }
    if args.json || !consent::can_ask() {
        let more = match kinds.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        return Err(Failure::misuse(format!(
            "nothing was run, because {first}{more}: give --yes to run it, or --dry-run to see the plan"
        )));
    }
    answer(|out| plan_text::print(plan, Style::of_stdout(), out))?;
    Ok(consent::ask("Run it?")?)
}
