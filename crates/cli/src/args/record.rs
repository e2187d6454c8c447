//! Arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use backstory_vocabulary::{
    ContentsMode, DurabilityMode, GuardMode, IoUringMode, LookupsMode, OutputsMode, SuppressMode,
    TimeMode, Word,
};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The text after the options in the help of `record`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory record -- make -j8\n  \
    backstory record --name nightly -- ./pipeline.sh data/\n  \
    backstory record -- sh -c 'sort words.txt | uniq -c > counts.txt'\n  \
    backstory record --param-from p.yaml --metric-from m.json -- ./train.py\n  \
    backstory record --json-summary run.json --wait -- ./configure\n  \
    backstory record --stats -- make\n  \
    backstory record --remote -- ssh box 'sort in > out'\n\n\
    The command keeps its input, output and signals.\n\
    Exit status: that of the command; 128+n if signal n ended it; 127 if the command\n\
    was not found; 126 if it could not be executed; 125 if record itself was misused\n\
    or failed.";

/// The help of `--contents`.
pub const CONTENTS: &str = "Which contents of files to store: `lazy` stores what was read and what \
    is left at the end, `all` stores every version, `off` stores nothing";

/// `record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Name the run; other commands accept the name instead of the id
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The run that this one repeats. The command ends with the process that started `record`
    #[arg(long, value_name = "RUN", hide = true)]
    pub repeats: Option<String>,

    /// Attach a tag to the run (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::search::tag)]
    pub tag: Vec<(String, String)>,

    /// Attach the values in FILE as parameters of the run, as they are before the command starts
    /// (repeatable; YAML, JSON, TOML or CSV). Values of secret names are redacted
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub param_from: Vec<PathBuf>,

    /// Attach the values in FILE as metrics of the run, as the command left them (repeatable)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub metric_from: Vec<PathBuf>,

    /// Write a summary to FILE when the command has ended: an object with "run", "exit",
    /// "complete", "lost" and more. `complete` is null while the verdict is open: processes of the
    /// run are still being recorded, or the log could not be finalized. See --wait
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub json_summary: Option<PathBuf>,

    /// Return only when all processes of the run have ended, the run is indexed and its contents
    /// are stored. The verdict on its completeness is then final
    #[arg(long)]
    pub wait: bool,

    /// Print one line on standard error when the command has ended. It has the elapsed time, the
    /// processor time, the peak memory of one process, and the numbers of processes and files. The
    /// run is indexed first. (`time backstory record` cannot see the processor time of the command)
    #[arg(long)]
    pub stats: bool,

    #[arg(long, value_name = "MODE", help = CONTENTS, value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Lazy)]
    pub contents: ContentsMode,

    /// Also store the contents of files of installed packages, and of large files that another
    /// store has, such as git-annex. By default a replay takes these files from this machine
    #[arg(long)]
    pub self_contained: bool,

    /// Whether the kernel reports system calls to the recording: `on` reports those that bypass the
    /// C library. `off` misses these calls; `show` then names static programs and Go programs.
    /// `strict` reports all calls, for hostile programs. `auto` (experimental) is `on` for each
    /// process only from the moment when it matters
    #[arg(long, value_name = "MODE", value_parser = words::<GuardMode>(), default_value_t = GuardMode::On)]
    pub guard: GuardMode,

    /// Which look-ups (stat, access, readlink) to record: `library` records those of programs that
    /// use the C library, `all` records all of them and is slower
    #[arg(long, value_name = "MODE", value_parser = words::<LookupsMode>(), default_value_t = LookupsMode::Library)]
    pub lookups: LookupsMode,

    /// How to treat io_uring: `decode` records what is submitted, but not with kernel-side polling.
    /// `refuse` fails its set-up, so that programs use ordinary system calls
    #[arg(long, value_name = "MODE", value_parser = words::<IoUringMode>(), default_value_t = IoUringMode::Decode)]
    pub io_uring: IoUringMode,

    /// Record only the first read and the first write of each open file
    #[arg(long, value_name = "MODE", value_parser = words::<SuppressMode>(), default_value_t = SuppressMode::On)]
    pub suppress: SuppressMode,

    /// Whether the log reaches the disk before the results: `after` waits for no disk. With
    /// `ordered`, a crash of the machine leaves no content on the disk that the log does not
    /// explain, if the command made it durable. With `sync`, the same holds for each write, which
    /// is slow
    #[arg(long, value_name = "MODE", value_parser = words::<DurabilityMode>(), default_value_t = DurabilityMode::After)]
    pub durability: DurabilityMode,

    /// Also record everything that enters and leaves the programs: bytes, results of system calls,
    /// signals. The record has secrets, and as many bytes as the programs read from elsewhere than
    /// files
    #[arg(long)]
    pub deep: bool,

    /// Also record calls of the functions whose names match GLOB (repeatable; `*` matches
    /// anything). FILE:GLOB is about one program, library or module. Functions of Python, Node and
    /// R are recorded as they are. Programs in C and C++ are to be compiled with `backstory cc`.
    /// Libraries that FILE names may stay as they are: `libz.so:inflate*`
    #[arg(long, value_name = "GLOB")]
    pub functions: Vec<String>,

    /// With --functions, also record the arguments and results of these calls. Programs are to be
    /// compiled with `-g`
    #[arg(long, requires = "functions")]
    pub arguments: bool,

    /// How a deep record has what the programs write and send: `digest` has its length and digest,
    /// `full` has the bytes
    #[arg(long, value_name = "MODE", value_parser = words::<OutputsMode>())]
    pub outputs: Option<OutputsMode>,

    /// With --deep: with `exact`, also record each time that a program takes, and what it reads
    /// from the processor (`rdtsc`, `cpuid`). `replay --deep` gives it the same again. Programs
    /// that often take the time get slower. With `usual`, the time is that of the recorded calls
    /// before
    #[arg(long, value_name = "MODE", value_parser = words::<TimeMode>())]
    pub time: Option<TimeMode>,

    /// With --deep: give the programs fixed addresses. `replay --deep` gives them the same ones.
    /// Programs that make random numbers from addresses, as OpenSSL 3.0 does, then mostly make the
    /// same ones again. The programs lack the protection of random addresses (ASLR), so do not
    /// record a server in this manner that strangers can reach
    #[arg(long)]
    pub fixed_addresses: bool,

    /// Run the command under the byte engine, which is 14 to 102 times as slow, and 396 times with
    /// an image filter. Then `of --bytes`, `--line`, `--cell` and `--member` say which input bytes
    /// each byte came from. `backstory refine` does it after the run
    #[arg(long, conflicts_with_all = ["deep", "remote"])]
    pub bytes: bool,

    /// With --bytes, also follow which input bytes decided about a byte by branches and
    /// comparisons. Such bytes are shown apart
    #[arg(long, requires = "bytes")]
    pub implicit: bool,

    /// Also redact the values of environment variables and options whose names match PATTERN
    /// (repeatable; `*` matches anything)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,

    /// Also record what the command starts on other machines through ssh, scp, sftp, rsync and git.
    /// The runs come into this store when the command has ended. backstory is copied there, if it
    /// is missing (to ~/.cache/backstory)
    #[arg(long)]
    pub remote: bool,

    /// Look for attacks while the command runs, and report each match on standard error: `all` for
    /// the rules of `backstory hunt`, the ID of one of them, or a file or directory with rules
    /// (repeatable). Nothing is blocked
    #[arg(long, value_name = "RULES", value_hint = clap::ValueHint::AnyPath, conflicts_with_all = ["deep", "remote"])]
    pub watch: Vec<PathBuf>,

    #[command(flatten)]
    pub watch_report: super::hunt::WatchReport,

    /// Stop recording the processes that outlive the command after SECONDS. By default they are
    /// recorded until they end
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

/// Parses an option's value from the words of a list, which `--help` and error messages name.
pub fn words<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    let words = W::ALL.iter().map(|value| value.word());
    PossibleValuesParser::new(words).try_map(|word| W::from_word(&word))
}
