//! Snakemake. After a job, it writes `.snakemake/metadata/NAME`, where NAME is the output's path in
//! base 64: JSON with the inputs that the rule named.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use data_encoding::{BASE64, BASE64URL};
use serde_json::Value;

use super::{BuildSystem, located};
use crate::build_run::BuildRun;
use crate::error::Result;
use crate::rules::DeclaredRules;

/// Snakemake.
pub struct Snakemake;

impl BuildSystem for Snakemake {
    fn name(&self) -> &'static str {
        "snakemake"
    }

    fn rules(&self, run: &BuildRun) -> Result<DeclaredRules> {
        let mut rules = DeclaredRules::default();
        let base = &*run.directory;
        let metadata = Path::new(OsStr::from_bytes(base)).join(".snakemake/metadata");
        for entry in fs::read_dir(metadata).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let decoded = BASE64URL
                .decode(name.as_bytes())
                .or_else(|_| BASE64.decode(name.as_bytes()));
            let target = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let text = fs::read(entry.path()).unwrap_or_default();
            let Some((target, record)) = target.zip(serde_json::from_slice::<Value>(&text).ok())
            else {
                continue;
            };
            let inputs = record["input"].as_array().into_iter().flatten();
            let inputs = located(inputs.filter_map(Value::as_str), base);
            let target = located([target.as_str()], base).remove(0);
            // Records of other runs of the same directory are of no interest.
            if run.made.contains(&target) {
                rules.add(target, inputs);
            }
        }
        let calls = run.calls.iter().filter(|call| call.is_of(&["snakemake"]));
        rules.add_read_by_tool(calls.flat_map(|call| call.read.iter().cloned()));
        Ok(rules)
    }
}
