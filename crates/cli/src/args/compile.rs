//! Arguments of `cc` and `c++`. Only the help needs them: everything is the compiler's.

use clap::Args;
use std::ffi::OsString;

/// The text after the options in the help.
pub const COMPILE: &str = "Examples:\n  \
    make CC='backstory cc' CXX='backstory c++'\n  \
    backstory cc --compiler=clang -O2 -o plot plot.c\n  \
    backstory record --functions 'write_*' -- ./plot\n\n\
    All arguments are the compiler's, but these, which come first:\n  \
    --compiler=NAME  the compiler (also BACKSTORY_CC and BACKSTORY_CXX)\n  \
    --hooks          for clang: -finstrument-functions in the place of XRay\n\n\
    A program that is compiled so behaves as before.";

/// `cc` and `c++`
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// The arguments of the compiler
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub all: Vec<OsString>,
}
