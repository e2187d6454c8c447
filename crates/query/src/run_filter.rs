//! Which runs a list shows.

use backstory_eventlog::event::Time;

use crate::answer::RunSummary;
use crate::{FilePattern, TextPattern};

/// A tag that a run has: its key, and perhaps its value.
#[derive(Debug, Clone)]
pub struct TagPattern {
    /// The key.
    pub key: String,
    /// The value. `None`: any.
    pub value: Option<TextPattern>,
}

impl TagPattern {
    fn is_on(&self, run: &RunSummary) -> bool {
        let value = |text: &str| (self.value.as_ref()).is_none_or(|value| value.matches(text));
        let mut tags = run.tags.iter();
        tags.any(|(key, text)| *key == self.key && value(text))
    }
}

/// Conditions on a run. A run must meet all of them; without any, each run does.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// It started at this time or later.
    pub since: Option<Time>,
    /// It started at this time or earlier.
    pub until: Option<Time>,
    /// Its command ended with a status other than 0, or by a signal.
    pub failed: bool,
    /// Its command line, or the base name of a word of it.
    pub command: Option<TextPattern>,
    /// The machine that it was recorded on.
    pub host: Option<TextPattern>,
    /// The id of the job of which it is a rank.
    pub job: Option<TextPattern>,
    /// Its name.
    pub name: Option<TextPattern>,
    /// A file that it read, executed or changed.
    pub file: Option<FilePattern>,
    /// Tags that it has.
    pub tags: Vec<TagPattern>,
    /// The beginning of the hash of a commit that it used.
    pub commit: Option<String>,
    /// Return at most this many runs, the newest.
    pub most: Option<usize>,
}

impl RunFilter {
    /// True if every run meets the conditions.
    pub fn is_empty(&self) -> bool {
        let texts = [&self.command, &self.host, &self.job, &self.name];
        let patterns = texts.into_iter().any(Option::is_some);
        let times = self.since.is_some() || self.until.is_some();
        !patterns
            && !times
            && !self.failed
            && self.file.is_none()
            && self.most.is_none()
            && self.tags.is_empty()
            && self.commit.is_none()
    }

    /// True if the run meets the conditions that its summary can show: all but `file`, `commit` and
    /// `most`.
    pub fn accepts(&self, run: &RunSummary) -> bool {
        let matches = |pattern: &Option<TextPattern>, text: Option<&str>| match pattern {
            Some(pattern) => text.is_some_and(|text| pattern.matches(text)),
            None => true,
        };
        let job = || run.job_rank.as_ref().and_then(|rank| rank.job.as_deref());
        let command = || run.command.iter().map(|word| &**word);
        self.since.is_none_or(|since| run.started >= since)
            && self.until.is_none_or(|until| run.started <= until)
            && (!self.failed || run.signal.is_some() || run.exit.is_some_and(|exit| exit != 0))
            && self.tags.iter().all(|tag| tag.is_on(run))
            && matches(&self.name, run.name.as_deref())
            && matches(&self.host, Some(&run.host))
            && matches(&self.job, job())
            && (self.command.as_ref()).is_none_or(|pattern| pattern.matches_command(command()))
    }
}
