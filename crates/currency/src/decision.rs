//! The fact that decided on the commands of a run, so that they are not right without it.

use std::fmt;

use backstory_eventlog::event::Bytes;
use backstory_workflow::shell::quote;

/// A fact that decided on commands, and the program that it reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decision {
    /// The kind of fact.
    pub fact: Fact,
    /// The file, program or option that the fact is about.
    pub subject: Bytes,
    /// The name of the program.
    pub program: Bytes,
}

/// The kinds of facts. The first ones tell a reader most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The program read a file that is not its own text.
    Read,
    /// It listed a directory.
    Listed,
    /// It looked at a file, or for one.
    Looked,
    /// It read what another program printed.
    Output,
    /// It went by the exit status of another program.
    Status,
    /// It changed the mode, the owner or the times of a result that another command made.
    Touched,
    /// It read a part of an open file, and another command read the rest.
    Shared,
    /// It read the file that the caller gave the run as standard input.
    OuterInput,
    /// It changed into a directory through a symbolic link.
    Link,
    /// It wrote to a file by a descriptor that no word of its command names.
    Descriptor,
    /// A shell's option that changes what its commands do.
    Option,
}

impl Fact {
    /// True if the fact is about names, so that no content of a file shows a change of it.
    pub fn is_look(self) -> bool {
        matches!(self, Fact::Listed | Fact::Looked | Fact::Link)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, subject) = (quote(&self.program), quote(&self.subject));
        match self.fact {
            Fact::Read => write!(out, "{program} read {subject}"),
            Fact::Listed => write!(out, "{program} listed {subject}"),
            Fact::Looked => write!(out, "{program} looked for {subject}"),
            Fact::Output => write!(out, "{program} read what {subject} printed"),
            Fact::Status => write!(out, "{program} went by the exit status of {subject}"),
            Fact::Touched => write!(out, "{program} changed the attributes of {subject}"),
            Fact::Shared => write!(out, "{program} read a part of {subject}"),
            Fact::OuterInput => write!(out, "{program} read its standard input, {subject}"),
            Fact::Link => write!(out, "{program} ran in {subject}, which is a link"),
            Fact::Descriptor => write!(out, "{program} inherited {subject} open"),
            Fact::Option => write!(out, "{program} has the option {subject}"),
        }
    }
}
