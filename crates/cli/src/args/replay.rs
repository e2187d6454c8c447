//! Arguments of the commands that run recorded commands again: `replay` and `rerun`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::amounts::range;
use super::scope::ScopeArgs;

/// Attempts to reconstruct a request.
const TRIES: u32 = 14;
/// Seconds without a call and without work after which the programs are ended.
const PATIENCE: u64 = 30;

/// The text after the options in the help of `replay`.
pub const REPLAY: &str = "Examples:\n  \
    backstory replay nightly\n  \
    backstory replay 7hx2k9qa --output-dir again\n  \
    backstory replay --input data.csv=other.csv --env THREADS=1\n  \
    backstory replay nightly --arg 2=--verbose\n  \
    backstory replay nightly -- sh           look around in the replay's root\n  \
    backstory replay --deep server --request 7 --with gdb\n  \
    backstory replay --deep server --request 3,5-9\n\n\
    Files come from the store. Files of packages come from this machine if they are\n\
    the same. A replay writes to --output-dir only.\n\
    Exit status: 0 if all outputs are identical, 1 if an output differs or the run\n\
    cannot be replayed.";

/// The text after the options in the help of `rerun`.
pub const RERUN: &str = "Examples:\n  \
    backstory rerun --dry-run report.txt     the plan: file, step and reason\n  \
    backstory rerun report.txt table.csv -j 4\n  \
    backstory rerun report.txt --force plot.png\n  \
    backstory rerun report.txt --env THREADS=1\n\n\
    A step is stale if an input, program or library has changed, if a file that it\n\
    did not find is there now, or if an output is not as the step left it. The steps\n\
    are recorded. Steps that only use unchanged outputs are not run.\n\
    Only steps with an output in the project's directory tree are run. rerun asks\n\
    before it runs a step that writes outside of it, deletes files, uses the network\n\
    or takes privilege. The old outputs of a step that fails are put back.\n\
    Exit status: 0 if the files are up to date; 1 if a step failed, did not run, or\n\
    is stale with --dry-run; 2 if --yes is missing.";

/// The text after the options in the help of `when`.
pub const WHEN: &str = "Examples:\n  \
    backstory when 'eval(' --run server      which calls moved this text?\n  \
    backstory when --to 127.0.0.1:5432       when did it write there?\n  \
    backstory when --to out.log 'ERROR'      when did it write this line?\n  \
    backstory when --hex 00ff0a --request 3\n\n\
    The run must have been recorded with --deep. It runs as by `replay --deep`.\n\
    Bytes of mapped files are not seen.\n\
    Exit status: 0 if a call was found, 1 if none was.";

/// `when`
#[derive(Debug, Args)]
pub struct WhenArgs {
    /// The text to find in the bytes that entered the programs or left them
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,

    /// Id or name of the run; by default the latest run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Only bytes that left through this descriptor number, file or address
    #[arg(long, value_name = "FD|PATH|ADDRESS")]
    pub to: Option<String>,

    /// The text is given as hexadecimal digits
    #[arg(long, requires = "text")]
    pub hex: bool,

    /// Run only request N of those that `requests` lists, and those that it needs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub request: Option<u32>,

    /// List all places, not only those that fit on a screen
    #[arg(long)]
    pub all: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl WhenArgs {
    /// How the run is made again.
    pub fn reconstruction(&self) -> ReconstructionArgs {
        ReconstructionArgs::of(self.request.map(|number| number as usize))
    }
}

/// The text after the options in the help of the processes of a replay.
pub const REPLAY_PROCESS: &str = "Examples:\n  backstory replay    starts it";

/// `replay`
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Id or name of the run; by default the latest run
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// A new or empty directory for the outputs; by default `replay-RUN-1`, `replay-RUN-2` and so
    /// on
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output_dir: Option<PathBuf>,

    /// Replace the N-th argument of the command with VALUE (the first after the command's name is
    /// 1; repeatable)
    #[arg(long, value_name = "N=VALUE")]
    pub arg: Vec<OsString>,

    /// Set an environment variable to VALUE, or to the value that it has here (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,

    /// Use the file NEW of this machine instead of OLD, which the run used (repeatable)
    #[arg(long, value_name = "OLD=NEW", value_hint = clap::ValueHint::FilePath)]
    pub input: Vec<OsString>,

    /// Allow the replay to use the network of this machine
    #[arg(long)]
    pub network: bool,

    /// Take files that are not in the store from this machine, and make directories visible that
    /// the run did not use
    #[arg(long)]
    pub allow_host: bool,

    /// Do not record the replay
    #[arg(long)]
    pub no_record: bool,

    /// Feed the program all that it received when it was recorded with `record --deep`: from the
    /// network, pipes, terminals and devices. What it writes is compared and discarded
    #[arg(long, conflicts_with_all = ["command", "network"])]
    pub deep: bool,

    /// The options of `--deep`
    #[command(flatten)]
    pub reconstruction: ReconstructionArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Another command to run in the root of the replay
    #[arg(value_name = "CMD", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl ReplayArgs {
    /// A deep replay with nothing changed.
    pub fn deeply(run: Option<String>, reconstruction: ReconstructionArgs) -> ReplayArgs {
        ReplayArgs {
            run,
            output_dir: None,
            arg: Vec::new(),
            env: Vec::new(),
            input: Vec::new(),
            network: false,
            allow_host: false,
            no_record: true,
            deep: true,
            reconstruction,
            json: true,
            command: Vec::new(),
        }
    }
}

/// The options of `replay --deep`.
#[derive(Debug, Args)]
pub struct ReconstructionArgs {
    /// With --deep: start with the program of this process, by its id in the run
    #[arg(long, value_name = "PID", requires = "deep", conflicts_with = "arg")]
    pub process: Option<u32>,

    /// With --deep: of the requests that `requests` lists, feed only number N, and those that it
    /// needs. Several run one after the other, as in 3,5-9
    #[arg(long, value_name = "N", requires = "deep", value_delimiter = ',', value_parser = numbers)]
    pub request: Vec<(usize, usize)>,

    /// With --deep: compare only output from this moment on: a date, or the number of a recorded
    /// call
    #[arg(long, value_name = "A", requires = "deep", conflicts_with = "request")]
    pub from: Option<String>,

    /// With --deep: end at this moment: a date, or the number of a recorded call
    #[arg(long, value_name = "B", requires = "deep", conflicts_with = "request")]
    pub to: Option<String>,

    /// With --deep: make at most N attempts until the output is equal, at other moments and, with
    /// --request, with earlier requests
    #[arg(long, value_name = "N", default_value_t = TRIES, requires = "deep")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub tries: u32,

    /// With --deep: run the program under this tool, as in `--with gdb` or `--with "strace -f"`.
    /// `asan=FILE` runs FILE instead, a build with a sanitizer. Implies --allow-host
    #[arg(long, value_name = "TOOL", requires = "deep")]
    pub with: Option<OsString>,

    /// With --deep: another build of the program
    #[arg(long, value_name = "FILE", requires = "deep", value_hint = clap::ValueHint::FilePath)]
    pub binary: Option<PathBuf>,

    /// With --deep: feed descriptor FD of the program with the bytes of FILE instead (repeatable).
    /// With --request, `request=FILE` replaces the bytes of that request
    #[arg(long, value_name = "FD=FILE", requires = "deep")]
    pub feed: Vec<OsString>,

    /// With --deep: text of outputs that matches this regular expression may differ. The verdict
    /// names it (repeatable)
    #[arg(long, value_name = "PATTERN", requires = "deep")]
    pub volatile: Vec<String>,

    /// With --deep: end the programs after N seconds without a call and without work, or four times
    /// as long without anything of the record. Work behind the last byte of a request has N
    /// seconds, too, or 20 times its recorded time if that is more
    #[arg(long, value_name = "N", default_value_t = PATIENCE, requires = "deep")]
    pub patience: u64,
}

impl ReconstructionArgs {
    /// The whole run, or one request, with nothing changed.
    pub fn of(request: Option<usize>) -> ReconstructionArgs {
        ReconstructionArgs {
            process: None,
            request: request.map(|number| (number, number)).into_iter().collect(),
            from: None,
            to: None,
            tries: TRIES,
            with: None,
            binary: None,
            feed: Vec::new(),
            volatile: Vec::new(),
            patience: PATIENCE,
        }
    }
}

/// A number from 1, or the first and the last of several, as in `5-9`.
fn numbers(text: &str) -> Result<(usize, usize), String> {
    let numbers = range(text).filter(|(first, _): &(usize, usize)| *first > 0);
    numbers.ok_or_else(|| "give numbers from 1, as in 3,5-9".to_owned())
}

/// `rerun`
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// The files to bring up to date. A step that several of them need runs once
    #[arg(value_name = "PATH", required = true, value_hint = clap::ValueHint::FilePath)]
    pub paths: Vec<PathBuf>,

    /// Run at most N steps at the same time. The output of each is printed when it has ended
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,

    /// Print the plan, and run nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Run without asking, also steps that write outside the project, delete files, use the network
    /// or take privilege
    #[arg(short, long)]
    pub yes: bool,

    /// Overwrite results that were edited by hand, replaced or brought back. `backstory undo` gets
    /// them again
    #[arg(long)]
    pub overwrite: bool,

    /// Run this step, or the step that makes this file, although it is current (repeatable)
    #[arg(short, long, value_name = "STEP|FILE", value_hint = clap::ValueHint::FilePath)]
    pub force: Vec<PathBuf>,

    /// After a failure go on with the steps that do not depend on the failed one
    #[arg(short, long)]
    pub keep_going: bool,

    /// The steps that may run
    #[command(flatten)]
    pub scope: ScopeArgs,

    /// Set an environment variable to VALUE, or to the value that it has here. Steps that had
    /// another value are stale (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The processes of a replay.
#[derive(Debug, Args)]
pub struct ReplayProcessArgs {
    /// The directory of the replay
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}
