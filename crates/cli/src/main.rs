//! The program `backstory`: records how files come to be, and answers questions about it.
//!
//! In: the command line. Out: answers on stdout, one line on stderr if something is wrong, and an
//! exit status. Only this crate depends on both the crates that record and the crates that answer,
//! and only this crate prints.

mod args;
mod byte_engine;
mod checkout;
mod commands;
mod commit_subject;
mod consent;
mod contents_writer;
mod current_store;
mod database_rows;
mod delivery;
mod ending;
mod error;
mod evidence_policy;
mod file_age;
mod file_inspector;
mod file_rows;
mod filtered_indexing;
mod final_identities;
mod handover;
mod index;
mod inspection_queue;
mod json;
mod lake_graphs;
mod log_follower;
mod member_subject;
mod mounted_paths;
mod pager;
mod parameter_file;
mod pipeline_file;
mod present_file;
mod record_judging;
mod recorded_shell;
mod recording_options;
mod remote;
mod running_runs;
mod schema_registry;
mod scope;
mod sha256_index;
mod shell_policy;
mod subject;
mod text;
mod tool_file;
mod undo_note;
mod version_change;
mod version_contents;
mod version_inspections;
mod when;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Cli, Command};
use commands::undo::HistoryMove;
use error::{Failure, Status};
use text::words::Direction;

fn main() -> ExitCode {
    report_damage_found_by_panics();
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = remote::wrapper::run(&args) {
        return status;
    }
    if let Some(status) = commands::compile::run(&args) {
        return status;
    }
    backstory_session::observe_children();
    let cli = match Cli::of(&args) {
        Ok(cli) => cli,
        Err(error) => return misused(&error, &args),
    };
    let store = cli.common.store.as_deref();
    if uses_tools(&cli.command) {
        tool_file::load();
    }
    pager::allow(!cli.common.no_pager && is_paged(&cli.command));
    if is_paged(&cli.command) {
        remote::returning::fetch_before_question(store);
    }
    let outcome = match cli.command {
        Command::Record(args) => commands::record::run(args, store),
        Command::Shell(args) => commands::shell::run(&args, store),
        Command::Init(args) => commands::shell::init(&args, store),
        Command::Pause => commands::pause::pause(),
        Command::Resume => commands::pause::resume(),
        Command::Config(args) => commands::pause::config(&args),
        Command::Import(args) => commands::import::run(args, store),
        Command::Mount(args) => commands::mount::run(args, store),
        Command::Watch(args) => commands::watch::run(args, store),
        Command::Files(args) => commands::files::run(args, store),
        Command::Processes(args) => commands::processes::run(args, store),
        Command::Show(args) => commands::show::run(args, store),
        Command::Log(args) => commands::log::run(args, store),
        Command::Of(args) => {
            let list = args.list();
            match args.bytes.selection() {
                Some(wanted) => commands::byte_origins::run(&args.lineage, &wanted, store),
                None => commands::lineage::run(args.lineage, list, Direction::Of, store),
            }
        }
        Command::Uses(args) => commands::lineage::run(args, None, Direction::Uses, store),
        Command::Origin(args) => commands::network::run(&args, Direction::Of, store),
        Command::Exfil(args) => commands::network::run(&args, Direction::Uses, store),
        Command::Inputs(args) => commands::inputs::run(args, store),
        Command::Policy(command) => commands::policy::run(command, store),
        Command::Who(args) => commands::who::run(args, store),
        Command::Peers(args) => commands::peers::run(args, store),
        Command::Requests(args) => commands::requests::run(args, store),
        Command::When(args) => commands::replay::sightings::run(args, store),
        Command::Scene(args) => commands::scene::run(args, store),
        Command::Hunt(args) => commands::hunt::run(args, store),
        Command::WatchLog(args) => commands::hunt::follow(&args, store),
        Command::Timeline(args) => commands::timeline::run(&args, store),
        Command::Query(args) => commands::query::run(args, store),
        Command::Spade(args) => commands::spade::run(args, store),
        Command::Tag(args) => commands::tag::run(args, store),
        Command::Compare(args) => commands::compare::run(args, store),
        Command::Status(args) => commands::status::run(args, store),
        Command::Diff(args) => commands::diff::run(args, store),
        Command::Inspect(args) => commands::inspect::run(args, store),
        Command::Undo(args) => commands::undo::run(&args, HistoryMove::Back, store),
        Command::Redo(args) => commands::undo::run(&args, HistoryMove::Forward, store),
        Command::Refine(args) => commands::refine::run(&args, store),
        Command::Replay(args) => commands::replay::run(args, store),
        Command::Rerun(args) => commands::rerun::run(args, store),
        Command::RemoteSide(args) => commands::remote_side::run(args, store),
        Command::ReplayEnter(args) => commands::replay::enter(&args.directory),
        Command::ReplayInside(args) => commands::replay::inside(&args.directory),
        Command::Export(args) => commands::export::run(args, store),
        Command::Rm(args) => commands::manage::rm(args, store),
        Command::Forget(args) => commands::forget::run(args, store),
        Command::Note(args) => commands::manage::note(args, store),
        Command::GitNote(args) => commands::git_note::run(args, store),
        Command::Name(args) => commands::manage::name(args, store),
        Command::Index(args) => commands::manage::index(args, store),
        Command::Pipeline(command) => commands::pipeline::run(command, store),
        Command::Schema(command) => commands::schema::run(command, store),
        Command::Blame(args) => commands::blame::run(args, store),
        Command::Contents(args) => commands::contents::run(args, store),
        Command::Serve(args) => commands::serve::run(args, store),
        Command::Store(command) => commands::store::run(command, store),
        Command::Tui(args) => commands::tui::run(args, store),
        Command::Doctor(args) => commands::doctor::run(args, store),
        Command::Emit(args) => commands::emit::run(args),
        // The compiler runs before these are parsed.
        Command::Cc(_) | Command::Cxx(_) => Ok(0),
        Command::Completions(args) => commands::generate::completions(args),
        Command::CompleteWords(args) => commands::complete_words::run(args, store),
        Command::Answer => commands::answer::run(store),
        Command::Man(args) => commands::generate::man(args),
    };
    ending::unless_ended();
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(failure) => error::report(&failure),
    }
}

/// Some storage engines panic on a damaged file, and the installed program aborts on a panic. So
/// the damage is reported as any other, and the program exits, before a panic does more.
fn report_damage_found_by_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(
        move |panic| match backstory_store::damaged_by_panic(panic) {
            Some(damage) => {
                error::complain(&error::chain(&damage));
                std::process::exit(Status::NotFound.code().into());
            }
            None => usual(panic),
        },
    ));
}

/// True for commands that look up programs or paths of tools. `record` looks up neither, and must
/// start its command at once.
fn uses_tools(command: &Command) -> bool {
    !matches!(
        command,
        Command::Record(_)
            | Command::Shell(_)
            | Command::Init(_)
            | Command::Pause
            | Command::Resume
            | Command::Config(_)
            | Command::Mount(_)
            | Command::Watch(_)
            | Command::RemoteSide(_)
            | Command::WatchLog(_)
            | Command::ReplayEnter(_)
            | Command::ReplayInside(_)
            | Command::Pipeline(_)
            | Command::Schema(_)
            | Command::Doctor(_)
            | Command::Emit(_)
            | Command::Cc(_)
            | Command::Cxx(_)
            | Command::Completions(_)
            | Command::CompleteWords(_)
            | Command::Man(_)
    )
}

/// True for commands whose answers may be long. The others print a few lines, talk with the user,
/// or write contents.
fn is_paged(command: &Command) -> bool {
    matches!(
        command,
        Command::Files(_)
            | Command::Processes(_)
            | Command::Show(_)
            | Command::Log(_)
            | Command::Of(_)
            | Command::Uses(_)
            | Command::Origin(_)
            | Command::Exfil(_)
            | Command::Inputs(_)
            | Command::Who(_)
            | Command::Peers(_)
            | Command::Requests(_)
            | Command::Query(_)
            | Command::Spade(_)
            | Command::Scene(_)
            | Command::Hunt(_)
            | Command::Timeline(_)
            | Command::Compare(_)
            | Command::Status(_)
            | Command::Diff(_)
            | Command::Inspect(_)
    )
}

/// Prints help and version, which are answers. All else is a wrong command line; `record` has an
/// exit status of its own for it.
fn misused(error: &clap::Error, args: &[OsString]) -> ExitCode {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        // The user typed `backstory` alone and wants to know the commands.
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(Status::Misuse.code());
        }
        _ => {}
    }
    let command = asked_for(args);
    let status = if command == Some("record") {
        Status::Record
    } else {
        Status::Misuse
    };
    error::report(&Failure {
        status,
        line: error::usage(error, command),
    })
}

/// The command in the arguments: the first word that is neither an option nor the value of
/// `--store`.
fn asked_for(args: &[OsString]) -> Option<&str> {
    let mut args = args.iter().skip(1).filter_map(|arg| arg.to_str());
    while let Some(arg) = args.next() {
        match arg {
            "--store" => drop(args.next()),
            arg if arg.starts_with('-') => {}
            arg => return Some(arg),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_behind_the_store() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            asked_for(&args("backstory --store record files")),
            Some("files")
        );
        assert_eq!(
            asked_for(&args("backstory --store=x record -z")),
            Some("record")
        );
        assert_eq!(asked_for(&args("backstory --nonsense")), None);
    }
}
