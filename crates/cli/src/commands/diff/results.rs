//! The outputs that differ, the programs that ended differently, and the last lines of the answer
//! of `diff`.

use backstory_ordering::SmallSort;
use std::io::{self, Write};

use backstory_replay::diff::{DiffSubject, Difference, DifferenceKind, DifferenceWeight};

use super::causes::{LISTED, NAMED, Printer, listed};
use super::sides::ComparedSide;
use super::{ComparedContent, content_of, not_compared};
use crate::text::line::printable;
use crate::text::style::Role;
use crate::text::words::counted;

impl Printer<'_> {
    /// Prints ends of programs that differ: the first, and that of the whole command.
    pub(super) fn ends(&self, out: &mut impl Write) -> io::Result<()> {
        let all = self.answered.diff.differences.iter();
        let ends: Vec<&Difference> = all
            .filter(|difference| difference.kind == DifferenceKind::Exit)
            .collect();
        if ends.is_empty() {
            return Ok(());
        }
        self.heading("Programs that ended differently", out)?;
        let most = if self.full { usize::MAX } else { NAMED };
        for end in ends.iter().take(most) {
            let [a, b] = [&end.a, &end.b]
                .map(|side| side.as_deref().map_or("unknown".to_owned(), printable));
            writeln!(out, "  {}  {a} → {b}", self.name(&end.of))?;
        }
        if ends.len() > most {
            writeln!(
                out,
                "  … and {}",
                counted(ends.len() - most, "other", "others")
            )?;
        }
        Ok(())
    }

    /// Prints the metrics that differ.
    fn metrics(&self, out: &mut impl Write) -> io::Result<()> {
        let all = self.answered.diff.differences.iter();
        let metrics: Vec<&Difference> = all
            .filter(|difference| difference.kind == DifferenceKind::Metric)
            .collect();
        if metrics.is_empty() {
            return Ok(());
        }
        self.heading("Metrics that differ", out)?;
        let most = if self.full { usize::MAX } else { LISTED };
        for metric in metrics.iter().take(most) {
            let [a, b] = [&metric.a, &metric.b]
                .map(|side| side.as_deref().map_or("(not noted)".to_owned(), printable));
            let name = printable(&metric.of);
            let name = self.style.paint(Role::Subject, &name);
            writeln!(out, "  {name}  {a} → {b}")?;
        }
        match metrics.len().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(
                out,
                "  … and {}",
                counted(more, "other metric", "other metrics")
            ),
        }
    }

    /// Prints the outputs that differ. Returns what is folded.
    pub(super) fn outputs(
        &self,
        left: &mut usize,
        out: &mut impl Write,
    ) -> io::Result<Vec<String>> {
        let all = self.answered.diff.differences.iter();
        let outputs: Vec<&Difference> = all
            .filter(|difference| difference.kind == DifferenceKind::Output)
            .collect();
        let subject = match &self.answered.b {
            ComparedSide::Version(version) => version.version,
            ComparedSide::Run(_) => None,
        };
        let (both, alone): (Vec<_>, Vec<_>) = outputs
            .into_iter()
            .filter(|output| subject.is_none() || output.versions[1] != subject)
            .partition(|output| output.a.is_some() && output.b.is_some());
        let (mut results, mut between): (Vec<_>, Vec<_>) =
            both.into_iter().partition(|output| !output.is_intermediate);
        if results.is_empty() {
            std::mem::swap(&mut results, &mut between);
        }
        // The result of a build is made last.
        results.sort_small_by_key(|output| std::cmp::Reverse(output.at));
        let mut folded = Vec::new();
        self.metrics(out)?;
        if !results.is_empty() {
            self.heading("Outputs that differ", out)?;
        }
        let most = if self.full { usize::MAX } else { LISTED };
        for output in results.iter().take(most) {
            let content = content_of(output, self.contents, self.inspector);
            let said = content.as_ref().map_or_else(
                || "the contents are not stored".to_owned(),
                ComparedContent::summary,
            );
            let name = self.style.paint(Role::Subject, &self.name(&output.of));
            writeln!(out, "  {name}  {said}")?;
            if let Some(content) = content {
                self.difference(&content, left, out)?;
            }
        }
        let names = |outputs: &[&Difference]| -> Vec<String> {
            outputs.iter().map(|output| self.name(&output.of)).collect()
        };
        if results.len() > most {
            let rest = &results[most..];
            let number = counted(rest.len(), "other output", "other outputs");
            writeln!(out, "  {number}: {}", listed(&names(rest)))?;
        }
        if !between.is_empty() {
            let number = counted(between.len(), "intermediate file", "intermediate files");
            writeln!(out, "  {number}: {}", listed(&names(&between)))?;
        }
        // The history of a version has files of earlier runs, which the other side may have made.
        let only = match self.answered.a.subject() {
            Some(DiffSubject::Version(_)) => "in the history of",
            _ => "made by",
        };
        for (letter, is_a) in [("a", true), ("b", false)] {
            let own: Vec<&Difference> = alone
                .iter()
                .filter(|output| output.a.is_some() == is_a)
                .copied()
                .collect();
            if !own.is_empty() {
                let number = counted(own.len(), "file", "files");
                folded.push(format!(
                    "{number} {only} {letter} only ({})",
                    listed(&names(&own))
                ));
            }
        }
        Ok(folded)
    }

    /// The last lines: what is the same, what else differs, what is not known.
    pub(super) fn footer(&self, folded: &[String], out: &mut impl Write) -> io::Result<()> {
        let diff = &self.answered.diff;
        let consequences = self.of(DifferenceWeight::Consequence).len();
        let mut lines = Vec::new();
        if !folded.is_empty() {
            lines.push(format!("also different: {}", folded.join(", ")));
        }
        if consequences > 0 {
            let (one, many) = ("more difference follows", "more differences follow");
            let follow = counted(consequences, one, many);
            lines.push(format!("{follow} from the commands that differ"));
        }
        match diff.same_outputs.len() {
            0 => {}
            1 => lines.push("1 output is the same".to_owned()),
            many => lines.push(format!("{many} outputs are the same")),
        }
        if let Some(first) = diff.unknown.first() {
            lines.push(not_compared(diff, &self.name(first)));
        }
        if !lines.is_empty() && !diff.differences.is_empty() {
            writeln!(out)?;
        }
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        if !folded.is_empty() || consequences > 0 {
            let hint = "`--level process` lists every difference";
            writeln!(out, "{}", self.style.paint(Role::Dim, hint))?;
        }
        Ok(())
    }
}
