//! Tests of the whole definition.

use super::*;
use backstory_vocabulary::GuardMode;
use clap::CommandFactory;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_shows_examples() {
    for command in Cli::command().get_subcommands() {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(
            help.starts_with("Examples:\n"),
            "{} has no examples",
            command.get_name()
        );
    }
}

#[test]
fn the_text_after_the_options_fits_a_terminal() {
    let cli = Cli::command();
    for command in cli.get_subcommands().chain([&cli]) {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in help.lines() {
            assert!(
                line.chars().count() <= 80,
                "{}: {line:?}",
                command.get_name()
            );
        }
    }
}

#[test]
fn a_recorded_command_keeps_its_own_options() {
    let cli = Cli::try_parse_from([
        "backstory",
        "record",
        "--name",
        "n",
        "--",
        "tar",
        "--name",
        "x",
        "--",
        "y",
    ]);
    let Ok(Cli {
        command: Command::Record(record),
        ..
    }) = cli
    else {
        panic!("{cli:?}")
    };
    assert_eq!(record.name.as_deref(), Some("n"));
    assert_eq!(record.command, ["tar", "--name", "x", "--", "y"]);
}

#[test]
fn arguments_behind_the_command_belong_to_it_without_dashes_too() {
    let cli = Cli::try_parse_from(["backstory", "record", "tar", "-x", "--guard=off", "--", "-"]);
    let Ok(Cli {
        command: Command::Record(record),
        ..
    }) = cli
    else {
        panic!("{cli:?}")
    };
    assert_eq!(
        (record.guard, record.command),
        (
            GuardMode::On,
            ["tar", "-x", "--guard=off", "--", "-"]
                .map(Into::into)
                .to_vec()
        )
    );
}

#[test]
fn a_question_can_leave_out_possible_edges() {
    for (args, wanted) in [(vec![], false), (vec!["--no-possible"], true)] {
        let cli = Cli::try_parse_from([vec!["backstory", "of", "x"], args].concat()).unwrap();
        let Command::Of(of) = cli.command else {
            panic!()
        };
        assert_eq!(of.lineage.no_possible, wanted);
    }
}

#[test]
fn the_bounds_of_sql_need_a_lake_if_the_store_is_not_asked_in_sql() {
    let parse = |words: &[&[&str]]| Cli::try_parse_from(words.concat());
    for question in [
        &["hunt"][..],
        &["timeline", "x"],
        &["origin", "x"],
        &["exfil", "x"],
        &["who", "x"],
    ] {
        let bounded = [&["backstory"][..], question, &["--memory", "9"]];
        let refused = parse(&bounded).unwrap_err();
        let missing = clap::error::ErrorKind::MissingRequiredArgument;
        assert_eq!(refused.kind(), missing, "{question:?}");
        let [own, question, bound] = bounded;
        parse(&[own, question, bound, &["--lake", "l"]]).unwrap();
        parse(&[own, question]).unwrap();
    }
    parse(&[&["backstory", "query", "SELECT 1", "--memory", "9"]]).unwrap();
}
