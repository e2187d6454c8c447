//! `docs/reasons.md` says what the list of reasons says; `BACKSTORY_BLESS=1` writes it anew.

use std::fmt::Write;

use backstory_eventlog::reason::{ROWS, UNDECODED};
use backstory_guard::table::{CallShape, GuardAction, ROWS as CALLS};

const HEAD: &str = "# What is known not to be known

`backstory show` says first whether a record is complete, and if not, why: `incomplete_because` with `--json`. After the command has ended
`record` prints the most important reason. Each sentence below is printed as it stands, with what is in braces filled in. Made from
`crates/eventlog/src/reason.rs` by `BACKSTORY_BLESS=1 cargo test -p backstory --test reasons_page`; each is provoked by a real
program in `crates/cli/tests/cli/reasons.rs`.

Beside these, `show` names *peers* (the addresses of processes outside the run that it talked to: what they did for it is not followed) and
the programs whose *look-ups* are not known (no recorder was in them; `--lookups=all` records them). Neither makes a run incomplete. What
is never noticed is in [limits.md](limits.md), marked *silent* there.

| sentence | what is not known, and why |
| --- | --- |
";

const UNDECODED_HEAD: &str = "
## What cannot be decoded

| what was used | what is not known |
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
