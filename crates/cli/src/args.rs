//! What the user may type: one definition, from which parsing, `--help`, man pages and completions come.
//!
//! Invariant: every visible command has examples (a test checks it), and nothing here touches a store.

use std::ffi::OsString;
use std::path::PathBuf;

use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode, Word};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Records how files come to be, and answers for it.
#[derive(Debug, Parser)]
#[command(
    name = "backstory",
    version,
    max_term_width = 100,
    propagate_version = false,
    after_help = "Examples:\n  \
        backstory record -- make            record a command, whatever it runs\n  \
        backstory of build/app              what made this file?\n  \
        backstory uses src/main.c           what came from this file?\n\n\
        A RUN is a short id as `backstory log` lists it, or a name; none means the\n\
        latest. The store is --store DIR, else $BACKSTORY_STORE, else\n\
        $XDG_DATA_HOME/backstory, else ~/.local/share/backstory.\n\
        Exit status: 0 done, 1 not found or failed, 2 misuse; `record` exits as its\n\
        command does, 125 if it cannot run it."
)]
pub struct Cli {
    /// Directory of the store
    #[arg(long, value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command and record what it reads, writes and runs
    #[command(after_help = "Examples:\n  \
        backstory record -- make -j8\n  \
        backstory record --name nightly -- ./pipeline.sh data/\n  \
        backstory record -- sh -c 'sort words.txt | uniq -c > counts.txt'\n  \
        backstory record --json-summary run.json -- ./configure\n\n\
        The command's input, output, signals and exit status are its own.\n\
        Exit status: that of the command; 128+n if signal n ended it;\n\
        127 if it was not found, 126 if it could not be run, 125 if record itself\n\
        was misused or failed.")]
    Record(RecordArgs),

    /// List the files a run touched, and how
    #[command(after_help = "Examples:\n  \
        backstory files                          the latest run's\n  \
        backstory files nightly --exclude '/usr/**'\n  \
        backstory files --all                    system files, too\n  \
        backstory files --json | jq -r '.[]|select(.access|index(\"write\")).path'")]
    Files(FilesArgs),

    /// List the programs a run executed, as a tree
    #[command(after_help = "Examples:\n  \
        backstory processes\n  \
        backstory processes nightly --json | jq '.[].argv'")]
    Processes(RunArgs),

    /// Show one run: its command, its end, and whether its record is complete
    #[command(after_help = "Examples:\n  \
        backstory show\n  \
        backstory show 7hx2k9qa\n  \
        backstory show --json | jq .complete\n\n\
        All that may be said after `because` and `warning` is in docs/reasons.md.")]
    Show(RunArgs),

    /// List all runs, newest first
    #[command(after_help = "Examples:\n  \
        backstory log\n  \
        backstory log --json | jq -r '.[].run'\n  \
        backstory log --raw 7hx2k9qa | less      every operation, as recorded")]
    Log(LogArgs),

    /// Where from: what made this file, and from what
    #[command(after_help = "Examples:\n  \
        backstory of report.txt\n  \
        backstory of report.txt --depth 1        only who wrote it, and the inputs\n  \
        backstory of report.txt --all --lookups  system files and look-ups, too\n  \
        backstory of report.txt --dot | dot -Tsvg > report.svg\n\n\
        Every command in the answer can be pasted into a shell.")]
    Of(LineageArgs),

    /// Where to: what came from this file
    #[command(after_help = "Examples:\n  \
        backstory uses raw.csv\n  \
        backstory uses raw.csv --run nightly\n  \
        backstory uses raw.csv --json")]
    Uses(LineageArgs),

    /// Are files as their last run left them, and are their inputs?
    #[command(after_help = "Examples:\n  \
        backstory status                         every file the latest run wrote\n  \
        backstory status report.txt counts.txt\n\n\
        Exit status: 0 if all is current, 1 if something is not.")]
    Status(StatusArgs),

    /// What do two runs, or the makings of two versions of a file, differ in, and where did that begin?
    #[command(after_help = "Examples:\n  \
        backstory diff 7hx2k9qa 8jq0a3zz\n  \
        backstory diff nightly nightly-old --json | jq .earliest\n  \
        backstory diff report.txt@7hx2k9qa report.txt@8jq0a3zz\n  \
        backstory diff report.txt --in 7hx2k9qa 8jq0a3zz\n\n\
        A file's version is the newest that RUN used or made; without @RUN the newest\n\
        of all. What is compared is everything that it came from.\n\
        Exit status: 0 the same, 1 different.")]
    Diff(DiffArgs),

    /// Play a run again, in an empty root with nothing but what it used, and compare what comes out
    #[command(after_help = "Examples:\n  \
        backstory replay nightly\n  \
        backstory replay 7hx2k9qa --output-dir again\n  \
        backstory replay --input data.csv=other.csv --env THREADS=1\n  \
        backstory replay nightly --arg 2=--verbose\n  \
        backstory replay nightly -- sh              look around in it\n\n\
        Files come from the store, those of packages from this machine if they are the\n\
        same. Nothing of yours is written to: outputs go to --output-dir.\n\
        Exit status: 0 all outputs are identical, 1 something is not, or it could not\n\
        be replayed.")]
    Replay(ReplayArgs),

    /// Bring a file up to date: do again only those of the recorded steps behind it whose circumstances have changed
    #[command(after_help = "Examples:\n  \
        backstory rerun --dry-run report.txt     which steps are stale, and why\n  \
        backstory rerun report.txt -j 4\n  \
        backstory rerun report.txt --env THREADS=1\n\n\
        A step is stale if its inputs, programs or libraries have changed, what it\n\
        looked for in vain is there now, or its outputs are not as it left them. Steps\n\
        are recorded. What comes out the same is followed no further.\n\
        Exit status: 0 up to date, 1 a step failed, or is stale with --dry-run.")]
    Rerun(RerunArgs),

    /// The first process of a replay
    #[command(hide = true, after_help = "Examples:\n  backstory replay    starts it")]
    ReplayEnter(ReplayProcessArgs),

    /// The second process of a replay
    #[command(hide = true, after_help = "Examples:\n  backstory replay    starts it")]
    ReplayInside(ReplayProcessArgs),

    /// Write a run, or all that a file came from, in a format that other tools read
    #[command(after_help = "Examples:\n  \
        backstory export                               lists the formats\n  \
        backstory export make -o Makefile              the latest run as rules\n  \
        backstory export shell report.txt -o again.sh  all that report.txt came from\n  \
        backstory export dot nightly --level process -o - | dot -Tsvg > nightly.svg\n  \
        backstory export make --exclude '**/*.log' --no-patterns -o Makefile\n\n\
        What is written is there completely or not at all. A run whose record is not\n\
        complete is exported with a warning.")]
    Export(ExportArgs),

    /// Forget a run
    #[command(after_help = "Examples:\n  \
        backstory rm 7hx2k9qa\n  \
        backstory rm nightly first-try\n\n\
        Files on disk that the run made are not touched.")]
    Rm(RmArgs),

    /// Attach a note to a run
    #[command(after_help = "Examples:\n  \
        backstory note 7hx2k9qa 'with the old compiler'\n  \
        backstory note nightly ''                removes it")]
    Note(NoteArgs),

    /// Name a run
    #[command(after_help = "Examples:\n  \
        backstory name 7hx2k9qa nightly\n  \
        backstory name nightly ''                removes it\n\n\
        A name may be given again to a later run; it then means the newest that has it.")]
    Name(NameArgs),

    /// Write what a file held: the newest recorded version of a path, or a content by its digest
    #[command(after_help = "Examples:\n  \
        backstory contents report.txt -o report.old\n  \
        backstory contents report.txt --run nightly | diff - report.txt\n  \
        backstory contents DIGEST -o input.csv   as `of --json` names it\n\n\
        Contents are kept by `record`, unless it is told `--contents=off`.")]
    Contents(ContentsArgs),

    /// The store as a whole: how big it is, is it sound, give room back, hand runs on
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        backstory store stats\n  \
        backstory store gc --older-than 30d --dry-run\n  \
        backstory store export nightly -o nightly.backstory"
    )]
    Store(StoreCommand),

    /// Bring the store up to date with what was recorded
    #[command(
        hide = true,
        after_help = "Examples:\n  \
        backstory index --wait\n\n\
        Runs by itself in the background after each `record`, and before the first\n\
        question that needs it."
    )]
    Index(IndexArgs),

    /// Print a completion script
    #[command(after_help = "Examples:\n  \
        backstory completions bash > /etc/bash_completion.d/backstory")]
    Completions(CompletionsArgs),

    /// Write the man pages into a directory
    #[command(after_help = "Examples:\n  \
        backstory man /usr/local/share/man/man1")]
    Man(ManArgs),
}

/// Parses an option's value from the words of a list, which `--help` and error messages name.
fn words<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    let words = W::ALL.iter().map(|value| value.word());
    PossibleValuesParser::new(words).try_map(|word| W::from_word(&word))
}

/// `record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Name the run, to ask for it by that name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// When the command has ended, write {"run", "exit", "complete", "lost", ...} to FILE. `complete` is null while processes of the
    /// run are still being recorded (see --wait)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub json_summary: Option<PathBuf>,

    /// Return only when all processes of the run have ended and the run is in the store: the verdict on its completeness is then final
    #[arg(long)]
    pub wait: bool,

    /// Keep what files held: `lazy` what was read and what is left at the end, `all` every version, too, `off` nothing
    #[arg(long, value_name = "MODE", value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Lazy)]
    pub contents: ContentsMode,

    /// Keep the contents of files that packages own, too, which could be had from there
    #[arg(long)]
    pub self_contained: bool,

    /// Observe by the kernel, too (`on`), not (`off`: system calls that programs make past the C library are then missed, and `show` says
    /// so of static programs and Go's only), or only (`strict`: for hostile programs)
    #[arg(long, value_name = "MODE", value_parser = words::<GuardMode>(), default_value_t = GuardMode::On)]
    pub guard: GuardMode,

    /// Whose look-ups (stat, access, readlink) to record: those of programs that use libc, or all (slower)
    #[arg(long, value_name = "MODE", value_parser = words::<LookupsMode>(), default_value_t = LookupsMode::Library)]
    pub lookups: LookupsMode,

    /// What to do about io_uring: read what is submitted (not complete if the kernel polls), or refuse it so that programs fall back
    #[arg(long, value_name = "MODE", value_parser = words::<IoUringMode>(), default_value_t = IoUringMode::Decode)]
    pub io_uring: IoUringMode,

    /// Record only the first read and write of each open file
    #[arg(long, value_name = "MODE", value_parser = words::<SuppressMode>(), default_value_t = SuppressMode::On)]
    pub suppress: SuppressMode,

    /// Also redact environment variables and options whose name matches PATTERN (repeatable; `*` matches anything)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,

    /// Stop recording daemons that outlive the command after SECONDS
    #[arg(long, value_name = "SECONDS")]
    pub detach_after: Option<u64>,

    /// The command and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}

/// A run to ask about.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Short id or name of the run; the latest if none
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `files`
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Which run, and how to print
    #[command(flatten)]
    pub run: RunArgs,

    /// Leave out paths that match (repeatable; `*` stays within a directory, `**` does not)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// List system files one by one instead of counting them
    #[arg(long)]
    pub all: bool,
}

/// `log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print the operations of one run as they were logged
    #[arg(long, value_name = "RUN", conflicts_with = "json")]
    pub raw: Option<String>,
}

/// `of` and `uses`
#[derive(Debug, Args)]
pub struct LineageArgs {
    /// The file
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,

    /// Print the graph as JSON
    #[arg(long, group = "form")]
    pub json: bool,

    /// Print the graph for Graphviz
    #[arg(long, group = "form")]
    pub dot: bool,

    /// Print a tree (the default)
    #[arg(long, group = "form")]
    pub tree: bool,

    /// Cross at most N commands
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,

    /// Leave out files that match, and what lies behind them (repeatable; `*` stays within a directory, `**` does not)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// Show everything in the tree, however long: system files one by one, commands and environments in full
    #[arg(long)]
    pub all: bool,

    /// Show in the tree, too, what could have happened but was not seen to (--json and --dot always have it)
    #[arg(long, overrides_with = "no_possible")]
    pub possible: bool,

    /// Drop what was not seen to happen
    #[arg(long)]
    pub no_possible: bool,

    /// Follow look-ups (stat, missing files, directory listings), not only contents and programs
    #[arg(long)]
    pub lookups: bool,

    /// Only within this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// `status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Files to check; those the latest run wrote if none
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `diff`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A run (short id or name), a file's version in a run, or a file
    #[arg(value_name = "RUN|PATH@RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub a: OsString,

    /// What to compare it with
    #[arg(value_name = "RUN|PATH@RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub b: Option<OsString>,

    /// Compare the versions that the file had in these two runs
    #[arg(long = "in", value_name = "RUN", num_args = 2, conflicts_with = "b")]
    pub within: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `replay`
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Short id or name of the run; the latest if none
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Where outputs go: a new or empty directory; `replay-RUN-1` and so on if none
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output_dir: Option<PathBuf>,

    /// Another argument instead of the N-th (1 is the first behind the command; repeatable)
    #[arg(long, value_name = "N=VALUE")]
    pub arg: Vec<OsString>,

    /// A variable with this value, or with the one it has here (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,

    /// The file NEW of this machine in the place of OLD, which the run used (repeatable)
    #[arg(long, value_name = "OLD=NEW", value_hint = clap::ValueHint::FilePath)]
    pub input: Vec<OsString>,

    /// Let it use this machine's network
    #[arg(long)]
    pub network: bool,

    /// Take what is not in the store from this machine, and let it see directories that the run did not touch
    #[arg(long)]
    pub allow_host: bool,

    /// Do not record the replay
    #[arg(long)]
    pub no_record: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Another command, in the same surroundings
    #[arg(value_name = "CMD", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `rerun`
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// The file
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub path: PathBuf,

    /// Run at most N steps at once
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,

    /// Only say which steps are stale, and why
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// A variable with this value, or with the one it has here; steps that had another are stale (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The processes of a replay.
#[derive(Debug, Args)]
pub struct ReplayProcessArgs {
    /// The replay's directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// `export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The format; none lists them
    #[arg(value_name = "FORMAT")]
    pub format: Option<String>,

    /// A run (short id or name), or a file: then all that it came from, over all runs; the latest run if none
    #[arg(value_name = "RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<OsString>,

    /// Where to write; `-` is stdout
    #[arg(short, long, value_name = "OUT", default_value = "-", value_hint = clap::ValueHint::AnyPath)]
    pub output: PathBuf,

    /// Of pictures and data: one node for each command that a person would write, each process, or everything
    #[arg(long, value_name = "LEVEL", default_value = "command")]
    pub level: Level,

    /// Leave out files that match (repeatable; `*` stays within a directory, `**` does not)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// Of workflows: one rule for each step, also where several differ only in a name
    #[arg(long)]
    pub no_patterns: bool,
}

/// `--level`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Level {
    Command,
    Process,
    All,
}

/// `rm`
#[derive(Debug, Args)]
pub struct RmArgs {
    /// Runs to forget
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
}

/// `contents`
#[derive(Debug, Args)]
pub struct ContentsArgs {
    /// The file, or the digest of a content (64 hexadecimal digits)
    #[arg(value_name = "PATH|DIGEST", value_hint = clap::ValueHint::AnyPath)]
    pub what: OsString,

    /// The version that this run used or made last
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `store`
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// How much there is, and what takes the room
    #[command(after_help = "Examples:\n  \
        backstory store stats\n  \
        backstory store stats --json | jq .contents.disk_bytes")]
    Stats(StoreStatsArgs),

    /// Read all contents and list what is damaged
    #[command(after_help = "Examples:\n  \
        backstory store verify\n\n\
        Exit status: 0 if all is as it was kept, 1 if something is not.")]
    Verify(StoreVerifyArgs),

    /// Give room back: forget old runs, and contents that no run refers to
    #[command(after_help = "Examples:\n  \
        backstory store gc                        only what no run refers to any more\n  \
        backstory store gc --older-than 30d       runs that began more than 30 days ago, too\n  \
        backstory store gc --max-size 20G         the oldest runs, until what is left is no larger\n  \
        backstory store gc --older-than 4w --dry-run")]
    Gc(StoreGcArgs),

    /// Write runs, with what their files held, into one file
    #[command(after_help = "Examples:\n  \
        backstory store export nightly -o nightly.backstory\n  \
        backstory store export 7hx2k9qa 8jq0a3zz -o both.backstory")]
    Export(StoreExportArgs),

    /// Take over runs that somebody exported
    #[command(after_help = "Examples:\n  \
        backstory store import nightly.backstory\n\n\
        What is in the store already is not imported again.")]
    Import(StoreImportArgs),
}

/// `store stats`
#[derive(Debug, Args)]
pub struct StoreStatsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store verify`
#[derive(Debug, Args)]
pub struct StoreVerifyArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store gc`
#[derive(Debug, Args)]
pub struct StoreGcArgs {
    /// Forget runs that began longer ago than AGE (30d, 12h, 4w)
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<i64>,

    /// Forget the oldest runs until the store takes no more than SIZE (500M, 20G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,

    /// Forget no run, only contents that none refers to (the default)
    #[arg(long, conflicts_with_all = ["older_than", "max_size"])]
    pub unreferenced: bool,

    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `store export`
#[derive(Debug, Args)]
pub struct StoreExportArgs {
    /// Runs to export
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,

    /// File to write
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
}

/// `store import`
#[derive(Debug, Args)]
pub struct StoreImportArgs {
    /// File that `store export` wrote
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Seconds, from a number and a unit.
fn age(text: &str) -> Result<i64, String> {
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    let (number, unit) =
        text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let unit = units.iter().find(|(name, _)| *name == unit);
    match (number.parse::<u32>(), unit) {
        (Ok(number), Some((_, seconds))) => Ok(i64::from(number) * seconds),
        _ => Err("give a number and a unit: s, m, h, d or w, as in 30d".to_owned()),
    }
}

/// Bytes, from a number and perhaps a unit.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim_end_matches(['i', 'B']) {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => 64,
    };
    let bytes = digits.parse::<u64>().ok().filter(|_| shift < 64);
    bytes
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "give a number of bytes, perhaps with k, M, G or T, as in 20G".to_owned())
}

/// `note`
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,

    /// The note; empty removes it
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// `name`
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Its name; empty removes it
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `index`
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Wait for another indexer of the same store to end instead of leaving the work to it
    #[arg(long)]
    pub wait: bool,
}

/// `completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory to write into; made if it is not there
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Write Markdown instead, as the documentation site has it: a page for each command, and a list
    #[arg(long)]
    pub markdown: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ages_and_sizes_have_units() {
        assert_eq!((age("30d"), age("2w")), (Ok(2_592_000), Ok(1_209_600)));
        assert_eq!(
            (size("20G"), size("7"), size("1KiB")),
            (Ok(20 << 30), Ok(7), Ok(1024))
        );
        for wrong in ["", "d", "-1d", "1y", "1.5h", "ä"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "G", "-1", "1X", "99999999T", "ä"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
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
    fn what_follows_the_options_fits_a_terminal_as_it_is_broken() {
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
    fn what_follows_the_command_is_the_commands_also_without_dashes() {
        let cli =
            Cli::try_parse_from(["backstory", "record", "tar", "-x", "--guard=off", "--", "-"]);
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
    fn a_run_can_be_asked_for_possible_edges_or_none() {
        for (args, wanted) in [(vec![], false), (vec!["--no-possible"], true)] {
            let cli = Cli::try_parse_from([vec!["backstory", "of", "x"], args].concat()).unwrap();
            let Command::Of(of) = cli.command else {
                panic!()
            };
            assert_eq!(of.no_possible, wanted);
        }
    }
}
