//! Collects jobs. In: a record for each output. Out: an activity for each job.

use crate::description::{
    ActivityNumber, DescribedActivity, Description, DescriptionGaps, Locations, NamedStates, Span,
};
use backstory_eventlog::event::Time;
use backstory_graph::model::{EntityKind, Relation};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The directory of the records, below that of the workflow.
const RECORDS: &[u8] = b"/.snakemake/metadata/";

/// Collects the jobs of a workflow.
pub(super) struct JobReader {
    description: Description,
    locations: Locations,
    states: NamedStates,
    jobs: HashMap<(String, String, String), ActivityNumber>,
    /// Jobs that did not end.
    unfinished: HashSet<ActivityNumber>,
}

impl JobReader {
    pub(super) fn new(locations: Locations) -> JobReader {
        JobReader {
            description: Description::default(),
            locations,
            states: NamedStates::default(),
            jobs: HashMap::new(),
            unfinished: HashSet::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full()
    }

    /// Takes the record of an output.
    pub(super) fn record(
        &mut self,
        path: &Path,
        output: &[u8],
        record: &Value,
    ) -> Result<(), String> {
        let rule = record.get("rule").and_then(Value::as_str);
        let rule = rule.ok_or("a record has a \"rule\"")?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let path = path.as_os_str().as_bytes();
        if let Some(at) = memchr::memmem::rfind(path, RECORDS) {
            self.locations.learn_base(&path[..at]);
        }
        let activity = self.job(rule, record);
        if let Some(output) = self.locations.path(output) {
            let description = &mut self.description;
            self.states
                .made(description, activity, &output, EntityKind::File);
        }
        if record.get("incomplete").and_then(Value::as_bool) == Some(true) {
            self.unfinished.insert(activity);
        }
        Ok(())
    }

    /// The activity of a job, which may have several outputs.
    fn job(&mut self, rule: &str, record: &Value) -> ActivityNumber {
        let text = |name: &str| record.get(name).map(Value::to_string).unwrap_or_default();
        let key = (rule.to_owned(), text("starttime"), text("job_hash"));
        if let Some(known) = self.jobs.get(&key) {
            return *known;
        }
        let command = record.get("shellcmd").and_then(Value::as_str);
        let mut notes = vec![(b"rule".to_vec(), rule.as_bytes().to_vec())];
        let params = record.get("params").and_then(Value::as_array);
        let params: Vec<&str> = params
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !params.is_empty() {
            notes.push((b"params".to_vec(), params.join(", ").into_bytes()));
        }
        let number = self.description.activity(DescribedActivity {
            words: match command {
                // Snakemake passes it to bash.
                Some(command) => ["bash", "-c", command.trim()]
                    .map(|word| word.as_bytes().to_vec())
                    .to_vec(),
                None => vec![rule.as_bytes().to_vec()],
            },
            cwd: self.locations.path(b".").unwrap_or_default(),
            span: Span {
                start: time(record, "starttime"),
                end: time(record, "endtime"),
            },
            is_part: command.is_none(),
            notes,
            ..DescribedActivity::default()
        });
        self.jobs.insert(key, number);
        let inputs = record.get("input").and_then(Value::as_array);
        for input in inputs.into_iter().flatten().filter_map(Value::as_str) {
            if let Some(path) = self.locations.path(input.as_bytes()) {
                self.states
                    .read(number, Relation::Read, &path, EntityKind::File);
            }
        }
        number
    }

    /// All that was collected.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        self.states.finish(&mut self.description);
        for flow in &mut self.description.flows {
            flow.is_certain &= flow.relation.is_use() || !self.unfinished.contains(&flow.activity);
        }
        let mut gaps = DescriptionGaps::default();
        gaps.gaps.push(
            "Snakemake has the last job of each output, with the inputs that its rule declares and \
             not the files that its command opened"
                .to_owned(),
        );
        (self.description, self.locations, gaps)
    }
}

/// A time in seconds since 1970.
fn time(record: &Value, name: &str) -> Option<Time> {
    let seconds = record.get(name)?.as_f64()?;
    let is_known = (0.0..9.2e9).contains(&seconds);
    is_known.then_some((seconds * 1e9) as Time)
}

/// The output that a record's name is: its path in base 64. A long one is split into directories,
/// each but the last with `@` before its part.
pub(super) fn output_of(path: &Path) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = vec![path.file_name()?.as_bytes()];
    let above = path.ancestors().skip(1).map_while(|one| one.file_name());
    parts.extend(above.map_while(|part| part.as_bytes().strip_prefix(b"@")));
    parts.reverse();
    let name = parts.concat();
    let name = name
        .strip_suffix(b"==")
        .or(name.strip_suffix(b"="))
        .unwrap_or(&name);
    let decoded = data_encoding::BASE64URL_NOPAD.decode(name).ok()?;
    (!decoded.is_empty()).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_record_is_its_output() {
        let output =
            |path: &str| output_of(Path::new(path)).map(|one| String::from_utf8(one).unwrap());
        let wanted = Some("count.txt".to_owned());
        assert_eq!(output("/w/.snakemake/metadata/Y291bnQudHh0"), wanted);
        assert_eq!(output("/w/.snakemake/metadata/@Y291b/nQudHh0"), wanted);
        assert_eq!(output("YQ=="), Some("a".to_owned()));
        assert_eq!(output("trace.log"), None);
    }
}
