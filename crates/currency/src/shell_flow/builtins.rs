//! The builtins of dash(1) and bash(1), by their effects on the shell.

/// Signals after which a shell ends, unless the action of a trap does something else.
pub const AT_THE_END: [&str; 14] = [
    "EXIT", "0", "HUP", "INT", "QUIT", "PIPE", "TERM", "1", "2", "3", "13", "15", "SIGINT",
    "SIGTERM",
];

/// Builtins that set no state and whose status says nothing of a value.
pub const PLAIN: [&str; 8] = [
    ":", "true", "false", "echo", "pwd", "kill", "break", "continue",
];

/// Builtins that set no state, and whose status depends on values.
pub const TESTING: [&str; 3] = ["test", "[", "printf"];

/// Special builtins, before which an assignment stays in the shell.
pub const STAYING: [&str; 10] = [
    ":", "break", "continue", "exit", "export", "readonly", "return", "set", "shift", "unset",
];

/// Builtins that set the variables that they name.
pub const SETTING: [&str; 11] = [
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
];

/// Variables that such a builtin sets without a word for them.
pub const SET_BY_THEM: [&str; 4] = ["REPLY", "MAPFILE", "OPTARG", "OPTIND"];

/// Builtins that interpret a text that is not known. It may define functions.
pub const EVALUATING: [&str; 3] = ["eval", "builtin", "fc"];

/// Builtins that interpret a file, and so may use and do everything.
pub const INTERPRETING: [&str; 2] = ["source", "."];

/// Builtins with other effects: everything may depend on them.
pub const OTHER: [&str; 21] = [
    "umask", "ulimit", "hash", "shopt", "enable", "type", "jobs", "bg", "fg", "disown", "suspend",
    "history", "bind", "complete", "compgen", "compopt", "logout", "caller", "dirs", "help",
    "times",
];

/// Builtins that can give a variable another name.
pub const RENAMING: [&str; 3] = ["declare", "local", "typeset"];
