//! The lines below the steps: the programs that started them, packages, devices, git work trees,
//! and what is uncertain.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;

use backstory_account::siblings;
use backstory_packages::PackageTally;
use backstory_query::Checkout;

use super::{RemoteStart, Screen, StepWriter, name};
use crate::checkout;
use crate::text::paths::shown;
use crate::text::{line, shell};

/// The number of packages that a line names.
const PACKAGES: usize = 5;

impl Screen<'_> {
    /// The programs that started the steps by the user's own rules.
    pub(super) fn starters(&self) -> Option<String> {
        let account = self.account;
        let mut rules: BTreeMap<Vec<&[u8]>, String> = BTreeMap::new();
        // The outermost names a set of rules, if several programs read the same.
        for &at in &account.drivers {
            let own = account.sources(at).map(|file| &*account.files[file].path);
            let mut own: Vec<&[u8]> = own.collect();
            own.sort_small();
            let words = siblings(account, &[at]);
            let program = words.first().and_then(|step| step.words.first());
            if let Some(program) = program.filter(|_| !own.is_empty()) {
                rules.insert(own, program.text.clone());
            }
        }
        let writer = StepWriter::new(account, self.sheet);
        let texts = rules.into_iter().map(|(files, program)| {
            format!("{program} ({})", writer.list(&files, self.sheet.here, 1))
        });
        let texts: Vec<String> = texts.collect();
        let text = format!("started by {}", texts.join(", "));
        (!texts.is_empty()).then(|| line::excerpt(&text, self.sheet.width))
    }

    /// The packages, in as many lines as they need.
    pub(super) fn packages(&self, packages: &PackageTally) -> Vec<String> {
        let lines = packages.lines(PACKAGES).into_iter().enumerate();
        lines
            .flat_map(|(at, line)| {
                let lead = if at == 0 { "packages: " } else { "          " };
                wrapped(lead, &line, self.sheet.width)
            })
            .collect()
    }

    /// The devices in one line.
    pub(super) fn devices(&self) -> Option<String> {
        let paths = self.account.devices();
        let paths: Vec<String> = paths.into_iter().map(shown).collect();
        let line = format!("devices: {}", paths.join(", "));
        (!paths.is_empty()).then(|| line::excerpt(&line, self.sheet.width))
    }

    /// The states of git work trees in one line.
    pub(super) fn git(&self, git: &[Checkout]) -> Option<String> {
        let texts = git.iter().map(|one| {
            let place = name(one.root.as_bytes(), self.sheet);
            let state = checkout::text(one);
            match place.as_str() {
                "." => state,
                _ => format!("{place}: {state}"),
            }
        });
        let texts: Vec<String> = texts.collect();
        let line = format!("git: {}", texts.join("; "));
        (!texts.is_empty()).then(|| line::excerpt(&line, self.sheet.width))
    }

    /// Says in one line what is uncertain.
    pub(super) fn doubts(&self) -> Option<String> {
        let account = self.account;
        let mut doubts = Vec::new();
        for run in &account.runs {
            let summary = &run.details.summary;
            if !summary.complete {
                let because = summary.incomplete_because.join("; ");
                doubts.push(format!("run {} is incomplete: {because}", summary.id));
            }
        }
        if account.cut {
            doubts.push("cut here: a larger --depth shows more".to_owned());
        }
        if account.files.iter().any(|file| file.by_content) {
            doubts.push("a file is joined to its maker by its content alone".to_owned());
        }
        match account.uncounted {
            0 => {}
            1 => doubts.push(
                "1 link is only possible and not followed (--possible follows it)".to_owned(),
            ),
            many => doubts.push(format!(
                "{many} links are only possible and not followed (--possible follows them)"
            )),
        }
        let text = format!("uncertain: {}", doubts.join("; "));
        (!doubts.is_empty()).then(|| line::excerpt(&text, 2 * self.sheet.width))
    }
}

/// The line about a run that ssh started.
pub(super) fn remote_start(start: &RemoteStart) -> String {
    let RemoteStart { run, machine, .. } = start;
    match &start.starter {
        Some((starter, command)) => {
            let command = shell::words(command.iter().map(|word| &**word));
            format!("on {machine}: run {run}, started by run {starter} ({command})")
        }
        None => format!("on {machine}: run {run}, started by a run that is not in this store"),
    }
}

/// The text behind `lead`, in lines of at most `width` columns. The later lines are indented as far
/// as the lead is long. A word that is longer than a line is not broken.
pub(super) fn wrapped(lead: &str, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(line::width(lead));
    let mut lines = Vec::new();
    let mut current = lead.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line::width(&current) + 1 + line::width(word) > width {
            lines.push(std::mem::replace(&mut current, indent.clone()));
            empty = true;
        }
        if !empty {
            current.push(' ');
        }
        current.push_str(word);
        empty = false;
    }
    lines.push(current);
    lines
}
