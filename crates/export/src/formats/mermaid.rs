//! A flowchart for Mermaid, which Markdown viewers draw.

use crate::family::Family;
use crate::format::{Format, Target};
use crate::{Result, View};
use backstory_graph::model::Certainty;

/// The number of edges above which Mermaid draws nothing. Only the page that shows a diagram can
/// raise it (`maxEdges`).
const TOO_MANY: usize = 500;

/// `mermaid`
pub struct Mermaid;

impl Format for Mermaid {
    fn name(&self) -> &'static str {
        "mermaid"
    }
    fn about(&self) -> &'static str {
        "a flowchart for Markdown"
    }
    fn family(&self) -> Family {
        Family::Picture
    }
    fn proven_by(&self) -> &'static str {
        "a check of its grammar"
    }

    fn warnings(&self, view: &View) -> Vec<String> {
        let edges = super::drawn(view).count();
        let too_many = (edges >= TOO_MANY).then(|| {
            format!(
                "{edges} arrows, but Mermaid draws less than {TOO_MANY} unless its page sets maxEdges: leave files out with --exclude, \
                 export a file instead of a run, or export svg or dot"
            )
        });
        too_many.into_iter().collect()
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        writeln!(out, "flowchart LR")?;
        for (at, activity) in view.activities.iter().enumerate() {
            writeln!(
                out,
                "  a{at}([\"{}\"])",
                text(&super::shorten(&activity.label))
            )?;
        }
        for (at, entity) in view.entities.iter().enumerate() {
            writeln!(
                out,
                "  e{at}[\"{}\"]",
                text(&super::entity_label(view, entity))
            )?;
        }
        for link in super::drawn(view) {
            let arrow = if link.certainty == Certainty::Possible {
                "-.->"
            } else {
                "-->"
            };
            writeln!(
                out,
                "  {} {arrow}|{}| {}",
                link.from.name(),
                super::arrow_label(link),
                link.to.name()
            )?;
        }
        Ok(())
    }
}

/// Text within quotes: Mermaid's entities are numbers between `#` and `;`, and it interprets HTML.
fn text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' | '[' | ']' | '{' | '}' | '|' => {
                out.push_str(&format!("#{};", c as u32));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
