//! Arguments of `scene`.

use std::ffi::OsString;

use clap::Args;

/// The text after the options in the help of `scene`.
pub const SCENE: &str = "Examples:\n  \
    backstory scene uploads/shell.php        which request wrote it?\n  \
    backstory scene shell.php --all\n  \
    backstory scene /etc/passwd --reads      which request read it?\n  \
    backstory scene 192.0.2.7                what did this peer do?\n  \
    backstory scene '2026-11-20 08:31:02' --run server\n  \
    backstory scene shell.php --html > incident.html\n\n\
    Requests and their bytes are known of runs of `record --deep`. Of other runs,\n\
    the answer names the processes and their connections. Passwords, tokens and\n\
    cookies among the bytes are replaced by <redacted>, where their form is known.";

/// `scene`
#[derive(Debug, Args)]
pub struct SceneArgs {
    /// A file, the address of a peer (HOST, HOST:PORT, unix:PATH), or a time
    #[arg(value_name = "PATH|ADDRESS|TIME", value_hint = clap::ValueHint::AnyPath)]
    pub subject: OsString,

    /// In this run only: its id or name
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Also requests that only read the file
    #[arg(long)]
    pub reads: bool,

    /// Show all requests in full, and all files
    #[arg(long)]
    pub all: bool,

    /// Find at most N requests
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub most: usize,

    /// Print JSON
    #[arg(long, conflicts_with_all = ["markdown", "html"])]
    pub json: bool,

    /// Print Markdown
    #[arg(long, conflicts_with = "html")]
    pub markdown: bool,

    /// Print a page of HTML that needs no other file
    #[arg(long)]
    pub html: bool,
}
