//! Arguments of `mount`.

use std::path::PathBuf;

use clap::Args;

use super::record::{CONTENTS, words};
use backstory_vocabulary::{ContentsMode, PassthroughMode};

/// The text after the options in the help of `mount`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory mount data /mnt/data            record what happens below /mnt/data\n  \
    backstory mount /srv/www /srv/www         mount a directory over itself\n  \
    backstory mount --contents=all data /mnt/data   keep versions, for `undo`\n  \
    backstory mount --nfs data /mnt/data      an NFS server exports /mnt/data\n  \
    backstory mount --name lab data /mnt/data & ... ; umount /mnt/data\n\n\
    The run ends when the directory is unmounted: by umount, by fusermount3 -u, or\n\
    by Ctrl-C here. Then `files`, `of`, `uses` and `who` know it. Root records all\n\
    users; another user records its own processes, and needs fusermount3.\n\n\
    With --contents, a program waits while the content that it is about to change is\n\
    copied. Copies take disk space until the run ends: at most the limit of the\n\
    store's contents (`backstory config`). So the default is `off`.";

/// `mount`
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The directory whose files are shown below the mount point
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,

    /// An existing directory: the same one, or one outside of DIR
    #[arg(value_name = "MOUNTPOINT", value_hint = clap::ValueHint::DirPath)]
    pub mountpoint: PathBuf,

    /// Name the run; other commands accept the name instead of the id
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Whether the kernel reads and writes the files itself (root, Linux 6.9): `on` makes reads and
    /// writes as fast as without the mount, and records the opens of files alone. `off` records the
    /// first read and the first write of each program, too. A file that a program inherits open
    /// (`sort <a >b`) is surely counted for that program only with `off`
    #[arg(long, value_name = "MODE", value_parser = words::<PassthroughMode>(), default_value_t = PassthroughMode::Off)]
    pub passthrough: PassthroughMode,

    #[arg(long, value_name = "MODE", help = CONTENTS, value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Off)]
    pub contents: ContentsMode,

    /// Let an NFS server export the mount point (handles of files stay valid), and record what its
    /// clients do as their doing
    #[arg(long)]
    pub nfs: bool,

    /// Also redact the values of environment variables and options with this name (`*` and `?`
    /// match; repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,
}
