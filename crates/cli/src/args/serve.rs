//! Arguments of `serve`.

use std::ffi::OsString;

use clap::Args;

use super::scope::ScopeArgs;

/// The text after the options in the help of `serve`.
pub const SERVE: &str = "Examples:\n  \
    backstory serve --open                    the page of all runs, in a browser\n  \
    backstory serve --open figure.png         the page of a file\n  \
    backstory serve --port 8010 nightly       the page of a run, at a fixed port\n\n\
    The page is for this machine and this user only. Its address has a secret\n\
    token. From another machine, use a tunnel: ssh -L 8010:127.0.0.1:8010 HOST.\n\
    The server ends with Ctrl-C.";

/// `serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The file or the run that the page opens with. By default it is the list of all runs
    #[arg(value_name = "PATH|RUN", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<OsString>,

    /// The port to listen on. 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Open the page in your browser
    #[arg(long)]
    pub open: bool,

    /// Let the page run `backstory rerun` for an outdated file
    #[arg(long)]
    pub allow_rerun: bool,

    /// The project, in which the page judges the status of files
    #[command(flatten)]
    pub scope: ScopeArgs,
}
