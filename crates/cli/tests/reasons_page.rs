//! `docs/reasons.md` agrees with the list of reasons; `BACKSTORY_BLESS=1` writes the page.

use std::fmt::Write;

use backstory_eventlog::reason::{ROWS, UNDECODED};
use backstory_guard::table::{CallShape, GuardAction, ROWS as CALLS};

const HEAD: &str = "# Why a record is not complete

This page is for users who read `because` or `warning` in the output of `backstory show`. It lists
every such sentence and says what is unknown then.

`show` says first whether a record is complete, and if not, why; `show --json` has the reasons in
`incomplete_because`. After the command has ended, `record` prints the most important reason. The
text in braces differs from run to run. The page is generated from `crates/eventlog/src/reason.rs`
by `BACKSTORY_BLESS=1 cargo test -p backstory --test programs reasons_page`. Real programs provoke
each reason in `crates/cli/tests/cli/reasons.rs`.

Two facts do not make a run incomplete. `show` names the *peers*: the addresses of processes outside
the run. Their work for the run is not followed. `show` also names the programs whose *look-ups*
are unknown, because no recorder was in them; `--lookups=all` records them. Limits that a run never
mentions are in [limits.md](limits.md), marked *silent* there.

| sentence | what is unknown, and why |
| --- | --- |
";

const UNDECODED_HEAD: &str = "
## What cannot be decoded

| what was used | what is unknown |
| --- | --- |
";

fn page() -> String {
    let mut out = HEAD.to_owned();
    for row in ROWS {
        writeln!(out, "| `{}` | {} |", row.sentence, row.meaning).expect("to a string");
    }
    out.push_str(UNDECODED_HEAD);
    for (name, meaning) in UNDECODED {
        writeln!(out, "| {name} | {meaning} |").expect("to a string");
    }
    out
}

#[test]
fn the_page_of_reasons_is_up_to_date() {
    backstory_testkit::page::is_up_to_date("reasons.md", &page());
}

#[test]
fn every_call_that_is_not_decoded_has_a_name_that_is_explained() {
    for row in CALLS {
        if let GuardAction::Flow(_, CallShape::Opaque(name)) = row.guard {
            assert!(
                UNDECODED.iter().any(|known| known.0 == name),
                "{}: {name}",
                row.name
            );
        }
    }
}
