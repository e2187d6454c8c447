//! The command line: one definition, from which parsing, `--help`, man pages, completions and the
//! reference come.
//!
//! Each group of commands has a file with its arguments and with the text that follows its options
//! in the help.
//!
//! Invariant: every command has examples (a test checks it), and nothing here opens a store.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub mod amounts;
pub mod bytes;
pub mod compile;
mod direct;
#[cfg(test)]
mod documented;
pub mod emit;
pub mod exchange;
pub mod export;
pub mod hunt;
pub mod import;
pub mod inputs;
pub mod inspect;
pub mod lineage;
pub mod mount;
pub mod pipeline;
pub mod policy;
pub mod program;
pub mod query;
pub mod record;
pub mod refine;
pub mod remote;
pub mod replay;
pub mod runs;
pub mod scene;
pub mod schema;
pub mod scope;
pub mod search;
pub mod serve;
pub mod shell;
pub mod spade;
pub mod store;
#[cfg(test)]
mod tests;
pub mod watch;

use compile::CompileArgs;
use emit::EmitArgs;
use export::{ContentsArgs, ExportArgs};
use hunt::{HuntArgs, TimelineArgs, WatchLogArgs};
use import::ImportArgs;
use inputs::InputsArgs;
use inspect::{InspectArgs, UndoArgs};
use lineage::{BlameArgs, DiffArgs, LineageArgs, NetworkArgs, OriginArgs, StatusArgs};
use mount::MountArgs;
use pipeline::PipelineCommand;
use policy::PolicyCommand;
use program::{CompleteWordsArgs, CompletionsArgs, DoctorArgs, IndexArgs, ManArgs, TuiArgs};
use query::QueryArgs;
use record::RecordArgs;
use refine::RefineArgs;
use remote::RemoteSideArgs;
use replay::{ReplayArgs, ReplayProcessArgs, RerunArgs, WhenArgs};
use runs::{ForgetArgs, GitNoteArgs, NameArgs, NoteArgs, RequestsArgs, RmArgs, RunArgs, ShowArgs};
use scene::SceneArgs;
use schema::SchemaCommand;
use search::{CompareArgs, FilesArgs, LogArgs, ProcessesArgs, TagArgs, WhoArgs};
use serve::ServeArgs;
use shell::{ConfigArgs, InitArgs, ShellArgs};
use spade::SpadeArgs;
use store::StoreCommand;
use watch::WatchArgs;

/// Records how files come to be, and answers questions about it.
#[derive(Debug, Parser)]
#[command(
    name = "backstory",
    version,
    max_term_width = 100,
    propagate_version = false,
    after_help = "Examples:\n  \
        backstory record -- make            record a command and all that it starts\n  \
        backstory of build/app              what made this file?\n  \
        backstory uses src/main.c           what came from this file?\n\n\
        RUN is an id that `backstory log` lists, or a name; by default the latest run.\n\
        The store is --store DIR, else $BACKSTORY_STORE, else $XDG_DATA_HOME/backstory,\n\
        else ~/.local/share/backstory.\n\
        At a terminal, long answers go through $BACKSTORY_PAGER, else $PAGER, else less.\n\
        Exit status: 0 if the command succeeded, 1 if something was not found or failed,\n\
        2 if the command line is wrong. `record` exits as its command does, or with 125\n\
        if it cannot run the command."
)]
pub struct Cli {
    /// The options that each command has
    #[command(flatten)]
    pub common: CommonArgs,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The options that each command has.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Directory of the store
    #[arg(long, value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// Print long answers directly, not through a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command and record what it reads, writes and executes
    #[command(after_help = record::EXAMPLES)]
    Record(RecordArgs),

    /// Start a shell and record each command line as a run
    #[command(after_help = shell::SHELL)]
    Shell(ShellArgs),

    /// Print a script for a start-up file, so that each interactive shell is recorded
    #[command(after_help = shell::INIT)]
    Init(InitArgs),

    /// Stop recording the lines of this shell
    #[command(after_help = shell::PAUSE)]
    Pause,

    /// Record the lines of this shell again
    #[command(after_help = shell::PAUSE)]
    Resume,

    /// Print the configuration of recorded shells, and the mistakes in it
    #[command(after_help = shell::CONFIG)]
    Config(ConfigArgs),

    /// Show, change and test the filters between recorded runs and the store
    #[command(subcommand, after_help = pipeline::EXAMPLES)]
    Pipeline(PipelineCommand),

    /// Show a directory at a mount point, and record what any process does there
    #[command(after_help = mount::EXAMPLES)]
    Mount(MountArgs),

    /// Record what any program does in a whole file system, or what happens in a database
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArgs),

    /// List the files that a run used, and how it used them
    #[command(after_help = search::FILES)]
    Files(FilesArgs),

    /// List the user's own files that a run read, or those that its build did not declare
    #[command(after_help = inputs::INPUTS)]
    Inputs(InputsArgs),

    /// Check how a file was made against the rules of a policy
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(PolicyCommand),

    /// List the programs that a run executed, as a tree
    #[command(after_help = search::PROCESSES)]
    Processes(ProcessesArgs),

    /// Show one run: command, result, own inputs and outputs, duration and memory
    #[command(after_help = runs::SHOW)]
    Show(ShowArgs),

    /// List all runs, the newest first
    #[command(after_help = search::LOG)]
    Log(LogArgs),

    /// Show where a file comes from: what wrote it, and from what
    #[command(after_help = lineage::OF)]
    Of(OriginArgs),

    /// Show where a file went: what was made from it
    #[command(after_help = lineage::USES)]
    Uses(LineageArgs),

    /// List the network addresses that a file's content came from
    #[command(after_help = lineage::ORIGIN)]
    Origin(NetworkArgs),

    /// List the network addresses that a file's content can have been sent to
    #[command(after_help = lineage::EXFIL)]
    Exfil(NetworkArgs),

    /// List every process that touched a file or talked to a host: when, how, in which run
    #[command(visible_alias = "touched", after_help = search::WHO)]
    Who(WhoArgs),

    /// Check whether files, and their inputs, are as their last run left them
    #[command(after_help = lineage::STATUS)]
    Status(StatusArgs),

    /// Compare two runs, or how two versions of a file were made, and find the earliest difference
    #[command(after_help = lineage::DIFF, override_usage = lineage::DIFF_USAGE)]
    Diff(DiffArgs),

    /// Show what is inside of a file of a known format, or what changed between two
    #[command(after_help = inspect::INSPECT)]
    Inspect(InspectArgs),

    /// Bring the former version of a file back
    #[command(after_help = inspect::UNDO)]
    Undo(UndoArgs),

    /// Take back `undo`: bring the later version of a file back
    #[command(after_help = inspect::REDO)]
    Redo(UndoArgs),

    /// Run a recorded command again in a root with only the files that it used, and compare the
    /// outputs
    #[command(after_help = replay::REPLAY)]
    Replay(ReplayArgs),

    /// Bring a file up to date: run those recorded steps again whose inputs have changed
    #[command(after_help = replay::RERUN)]
    Rerun(RerunArgs),

    /// Record what ssh starts on this machine, for `record --remote` on another one
    #[command(hide = true, after_help = remote::REMOTE_SIDE)]
    RemoteSide(RemoteSideArgs),

    /// The first process of a replay
    #[command(hide = true, after_help = replay::REPLAY_PROCESS)]
    ReplayEnter(ReplayProcessArgs),

    /// The second process of a replay
    #[command(hide = true, after_help = replay::REPLAY_PROCESS)]
    ReplayInside(ReplayProcessArgs),

    /// Write a run, or all that a file came from, in a format of other tools
    #[command(after_help = export::EXPORT)]
    Export(ExportArgs),

    /// Make a run of what another tool recorded, or list the formats
    #[command(after_help = import::EXAMPLES)]
    Import(ImportArgs),

    /// Remove runs from the store
    #[command(after_help = runs::RM)]
    Rm(RmArgs),

    /// Remove runs and contents so that nothing is left of them
    #[command(after_help = runs::FORGET)]
    Forget(ForgetArgs),

    /// Attach a note to a run
    #[command(after_help = runs::NOTE)]
    Note(NoteArgs),

    /// Note in git which runs made the files of a commit
    #[command(after_help = runs::GIT_NOTE)]
    GitNote(GitNoteArgs),

    /// Name a run
    #[command(after_help = runs::NAME)]
    Name(NameArgs),

    /// Show which run introduced each line of a text file
    #[command(after_help = lineage::BLAME)]
    Blame(BlameArgs),

    /// List the addresses that a run's processes talked to, or tried to
    #[command(after_help = search::PEERS)]
    Peers(RunArgs),

    /// List the requests that the processes of a deep run served or made
    #[command(after_help = runs::REQUESTS)]
    Requests(RequestsArgs),

    /// Find the request behind a file, an address or a time: its bytes, files and programs
    #[command(after_help = scene::SCENE)]
    Scene(SceneArgs),

    /// Find the calls of a deep run that moved a text, or wrote to a file or address
    #[command(after_help = replay::WHEN)]
    When(WhenArgs),

    /// Look for known attacks in recorded runs, by rules in the form of Sigma
    #[command(after_help = hunt::HUNT)]
    Hunt(HuntArgs),

    /// The process of `record --watch` that looks for attacks in the log
    #[command(hide = true, after_help = hunt::WATCH_LOG)]
    WatchLog(WatchLogArgs),

    /// Show what happened in the order of time: in a run, to a file, or with an address
    #[command(after_help = hunt::TIMELINE)]
    Timeline(TimelineArgs),

    /// Ask in SQL: runs, processes, files, edges and steps as tables
    #[command(after_help = query::QUERY)]
    Query(QueryArgs),

    /// Ask in SPADE's query language: `$base.getLineage(...)`, `dump`, `export`
    #[command(after_help = spade::SPADE)]
    Spade(SpadeArgs),

    /// Attach tags to a run, or print them
    #[command(after_help = search::TAG)]
    Tag(TagArgs),

    /// Compare runs in a table: parameters, metrics, tags, durations and results
    #[command(after_help = search::COMPARE)]
    Compare(CompareArgs),

    /// Write the stored content of a file: of the newest recorded version of a path, or of a digest
    #[command(after_help = export::CONTENTS)]
    Contents(ContentsArgs),

    /// Show runs, files and their origins as a page in the browser
    #[command(after_help = serve::SERVE)]
    Serve(ServeArgs),

    /// Find out which bytes of which inputs each byte of a run's outputs came from
    #[command(after_help = refine::REFINE)]
    Refine(RefineArgs),

    /// Manage the store: its size, its integrity, free space, exchange runs
    #[command(subcommand, after_help = store::EXAMPLES)]
    Store(StoreCommand),

    /// Add finished runs to the store now, with the contents of their files
    #[command(after_help = program::INDEX)]
    Index(IndexArgs),

    /// Show runs, files and their lineage in views at the terminal
    #[command(after_help = program::TUI)]
    Tui(TuiArgs),

    /// Check what recording needs of this machine, and say what to do about what is missing
    #[command(after_help = program::DOCTOR)]
    Doctor(DoctorArgs),

    /// Say what a script does, and which things it uses, inside a recording
    #[command(after_help = emit::EMIT)]
    Emit(EmitArgs),

    /// Register the schemas of the records that programs add
    #[command(subcommand, after_help = schema::EXAMPLES)]
    Schema(SchemaCommand),

    /// Run the C compiler, so that calls of functions can be recorded
    #[command(after_help = compile::COMPILE)]
    Cc(CompileArgs),

    /// Run the C++ compiler, so that calls of functions can be recorded
    #[command(name = "c++", after_help = compile::COMPILE)]
    Cxx(CompileArgs),

    /// Print a completion script for a shell
    #[command(after_help = program::COMPLETIONS)]
    Completions(CompletionsArgs),

    /// Print the formats, runs or paths that can stand for the last word
    #[command(hide = true, after_help = program::COMPLETE_WORDS)]
    CompleteWords(CompleteWordsArgs),

    /// Answer a question of the Python package, which is on standard input
    #[command(hide = true, after_help = program::ANSWER)]
    Answer,

    /// Write the man pages into a directory
    #[command(after_help = program::MAN)]
    Man(ManArgs),
}
