//! Commands about a lake: the program `backstory-lake`, a package of its own, answers them.
//! [`crate::lake_graphs`] asks it for graphs of runs.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use backstory_query as query;
use backstory_store::Home;

use super::Outcome;
use crate::args::lineage::NetworkArgs;
use crate::args::query::{QueryArgs, SqlBounds};
use crate::args::search::WhoArgs;
use crate::args::store::StoreShipArgs;
use crate::error::Failure;
use crate::text::words::Direction;

/// The program of the package.
const PROGRAM: &str = "backstory-lake";

/// `store ship`: becomes `backstory-lake ship`.
pub fn ship(args: StoreShipArgs, store: Option<&Path>) -> Outcome {
    let mut words: Vec<OsString> = vec!["ship".into(), "--store".into()];
    words.push(Home::directory(store)?.into());
    words.extend(["--to".into(), args.to]);
    if let Some(config) = args.config {
        words.extend(["--config".into(), config.into()]);
    }
    let flags = [("--forget", args.forget), ("--json", args.json)];
    words.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.into()));
    words.push("--".into());
    words.extend(args.runs.into_iter().map(OsString::from));
    Err(become_lake(words))
}

/// `query --lake`: becomes `backstory-lake query`.
pub fn ask(args: QueryArgs, lake: OsString) -> Outcome {
    let mut words: Vec<OsString> = vec!["query".into(), "--lake".into(), lake];
    let flags = [
        ("--schema", args.schema),
        ("--json", args.json),
        ("--csv", args.csv),
    ];
    words.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.into()));
    words.extend(bound_options(args.bounds));
    words.push("--".into());
    words.extend(args.sql.map(OsString::from));
    Err(become_lake(words))
}

/// `origin --lake` and `exfil --lake`: becomes `backstory-lake origin` or `exfil`.
pub fn network(args: &NetworkArgs, direction: Direction, lake: &OsStr) -> Outcome {
    let name = match direction {
        Direction::Of => "origin",
        Direction::Uses => "exfil",
    };
    let mut words: Vec<OsString> = vec![name.into(), "--lake".into(), lake.into()];
    let flags = [("--json", args.json), ("--possible", args.possible)];
    words.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.into()));
    words.extend(bound_options(args.bounds.sql));
    words.extend(["--".into(), absolute(&args.path)?]);
    Err(become_lake(words))
}

/// `who --lake`: becomes `backstory-lake touched`.
pub fn touched(args: &WhoArgs, lake: &OsStr) -> Outcome {
    let mut words: Vec<OsString> = vec!["touched".into(), "--lake".into(), lake.into()];
    let flags = [("--json", args.json), ("--lookups", args.lookups)];
    words.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.into()));
    if let Some(most) = args.most {
        words.extend(["--most".into(), most.to_string().into()]);
    }
    words.extend(bound_options(args.bounds.sql));
    let given = args.path.to_string_lossy();
    // A lake is asked for one address, which the answer names.
    let local = query::localhost_addresses(&given).map(|[first, _]| first);
    let local = local.filter(|_| !args.path.exists());
    let subject = local.as_deref().unwrap_or(&given);
    let is_address = query::address_of(subject.as_bytes()).is_some()
        || subject.parse::<IpAddr>().is_ok()
        || subject.parse::<SocketAddr>().is_ok();
    words.push("--".into());
    words.push(match (is_address, &local) {
        (true, Some(local)) => local.into(),
        (true, None) => args.path.clone().into(),
        (false, _) => absolute(&args.path)?,
    });
    Err(become_lake(words))
}

/// The options of the program for the bounds of an answer.
pub fn bound_options(bounds: SqlBounds) -> [OsString; 4] {
    let (seconds, megabytes) = (bounds.timeout, bounds.memory.megabytes);
    [
        "--timeout".into(),
        seconds.to_string().into(),
        "--memory".into(),
        megabytes.to_string().into(),
    ]
}

/// A path as a lake has it.
fn absolute(path: &Path) -> Result<OsString, Failure> {
    Ok(query::Asked::new(path)?.absolute.into_os_string())
}

/// The program beside this one, else that on the path.
pub fn program() -> Command {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.with_file_name(PROGRAM);
    let mut command = Command::new(match beside.is_file() {
        true => beside.as_os_str(),
        false => PROGRAM.as_ref(),
    });
    // The package asks this very program for the rows of a store.
    command.env("BACKSTORY_PROGRAM", &own);
    command
}

/// Executes the program. Returns only if that fails.
fn become_lake(words: Vec<OsString>) -> Failure {
    not_started(&program().args(words).exec())
}

/// The program could not be executed.
pub fn not_started(error: &std::io::Error) -> Failure {
    Failure::not_found(match error.kind() {
        ErrorKind::NotFound => format!(
            "a lake needs the program {PROGRAM}, which is neither beside this program nor on the path; \
             install it: pip install backstory-lake"
        ),
        _ => format!("cannot execute {PROGRAM}: {error}"),
    })
}
