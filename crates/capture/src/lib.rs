//! In: a command. Out: the event log of its run.
