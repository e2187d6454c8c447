//! `store push`, `store pull`, and the command that serves them on the other side.

mod selection;
mod signing;

use std::io::Write;
use std::path::Path;

use backstory_contents::WorkMeter;
use backstory_exchange::{
    AllowedSigners, BucketPeer, Direction, Outcome as Exchanged, Peer, RemoteAddress,
    RemoteProcess, RemoteProgram, StorePeer, Transfer, serve,
};
use backstory_store::{Home, Store, open_store};
use backstory_vocabulary::counted;

use crate::args::exchange::{ExchangeArgs, StorePullArgs, StorePushArgs, StoreServePeerArgs};
use crate::commands::{Outcome, answer, deep_programs};
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::ending::{self, AtWork, Workers};
use crate::error::{Failure, chain, complain, one_line};
use crate::index::{self, Busy};
use crate::json::{self, Value};
use crate::text::progress::{Progress, Unit};
use crate::text::when::size;
pub use selection::Selector;
use selection::options;

/// The version that both sides name.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Sends runs.
pub fn push(args: StorePushArgs, store: Option<&Path>) -> Outcome {
    ending::watch(Workers::Killed);
    let home = Home::open_to_read(&Home::directory(store)?)?;
    let database = up_to_date(&home)?;
    let mut local = StorePeer::new(home, database, Selector);
    if let Some(key) = &args.sign {
        local = local.receiving(None).map_err(failure)?;
        if !args.exchange.dry_run {
            signing::sign(&mut local, &options(&args.exchange)?, key)?;
        }
    }
    exchange(&args.exchange, local, Direction::Push)
}

/// Fetches runs.
pub fn pull(args: StorePullArgs, store: Option<&Path>) -> Outcome {
    ending::watch(Workers::Killed);
    let home = Home::locate(store)?;
    let signers = args.allowed_signers.as_deref().map(AllowedSigners::open);
    let signers = signers.transpose().map_err(failure)?;
    let database = up_to_date(&home)?;
    let local = StorePeer::new(home, database, Selector);
    let local = local.receiving(signers).map_err(failure)?;
    exchange(&args.exchange, local, Direction::Pull)
}

/// Serves a store on stdin and stdout.
pub fn serve_peer(args: StoreServePeerArgs, store: Option<&Path>) -> Outcome {
    if let Some(RemoteAddress::Bucket(bucket)) = &args.bucket {
        let mut peer = BucketPeer::open(bucket, !args.read_only).map_err(failure)?;
        return served(serve_on_stdio(&mut peer));
    }
    let chosen = args.directory.as_deref().or(store);
    let home = match args.read_only {
        true => Home::open_to_read(&Home::directory(chosen)?)?,
        false => Home::locate(chosen)?,
    };
    let signers = args.allowed_signers.as_deref().map(AllowedSigners::open);
    let signers = signers.transpose().map_err(failure)?;
    let database = up_to_date(&home)?;
    let mut peer = StorePeer::new(home, database, Selector);
    if !args.read_only {
        peer = peer.receiving(signers).map_err(failure)?;
    }
    match serve_on_stdio(&mut peer) {
        // The other side reports a lost connection to the user.
        Err(backstory_exchange::Error::Connection(_)) => Ok(1),
        done => served(done),
    }
}

fn serve_on_stdio(peer: &mut dyn Peer) -> backstory_exchange::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut output = std::io::BufWriter::new(&mut output);
    serve(peer, PROGRAM, &mut input, &mut output)
}

fn served(done: backstory_exchange::Result<()>) -> Outcome {
    done.map(|()| 0).map_err(failure)
}

/// The database of a store with all runs and contents indexed. A store that may only be read is
/// offered as it is.
fn up_to_date(home: &Home) -> Result<Box<dyn Store>, Failure> {
    {
        let mut current = CurrentStore::open(Some(home.dir()))?;
        let done = contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait);
        if let Err(error) = done {
            complain(&format!(
                "cannot store the contents of the newest runs, so they are left out: {}",
                chain(&error)
            ));
        }
    }
    Ok(open_store(home)?)
}

fn failure(error: backstory_exchange::Error) -> Failure {
    Failure::not_found(chain(&error))
}

fn exchange(args: &ExchangeArgs, local: StorePeer<'_>, direction: Direction) -> Outcome {
    let select = options(args)?;
    let program = RemoteProgram {
        ssh: ssh_words(args),
        remote: args.remote_program.clone(),
        own: std::env::current_exe()?,
    };
    let read_only = direction == Direction::Pull || args.dry_run;
    refuse_itself(&args.remote, local.home())?;
    if args.dry_run && direction == Direction::Push {
        refuse_absent(&args.remote)?;
    }
    let mut process = RemoteProcess::start(&args.remote, &program, read_only).map_err(failure)?;
    let child = AtWork::of(process.child());
    let (what, remote_select) = match direction {
        Direction::Push => (format!("sending runs to {}", args.remote), &[][..]),
        Direction::Pull => (format!("fetching runs from {}", args.remote), &select[..]),
    };
    let meter = WorkMeter::default();
    let progress = Progress::metered(&what, &meter, Unit::Bytes);
    let mut local = local.metered(&meter);
    let done = process.connect(PROGRAM, remote_select).and_then(|remote| {
        let mut remote = remote;
        if direction == Direction::Push {
            local.select(&select)?;
        }
        let mut transfer = Transfer {
            local: &mut local,
            remote: &mut remote,
            direction,
            meter: meter.clone(),
        };
        match args.dry_run {
            true => transfer.examine(),
            false => transfer.run(&mut |run, why| {
                complain(&format!("run {run} is left out: {why}"));
            }),
        }
    });
    progress.end();
    let done = match done {
        Ok(done) => done,
        Err(error) => return Err(failure(process.explain(error))),
    };
    process.wait();
    drop(child);
    if args.dry_run {
        for (run, why) in &done.refused {
            complain(&format!("run {run} would be left out: {why}"));
        }
    }
    for problem in &done.problems {
        complain(problem);
    }
    if direction == Direction::Push && !args.dry_run {
        deep_programs::tell_left_behind(local.home(), done.runs.iter().map(String::as_str));
    }
    print(args, direction, &done)?;
    Ok(u8::from(
        !done.refused.is_empty() || !done.problems.is_empty(),
    ))
}

/// The ssh program and its options.
fn ssh_words(args: &ExchangeArgs) -> Vec<String> {
    let variable = || std::env::var("BACKSTORY_SSH").ok();
    let command = args.ssh.clone().or_else(variable).unwrap_or_default();
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    match words.is_empty() {
        true => vec!["ssh".to_owned()],
        false => words,
    }
}

/// A store has nothing to exchange with itself.
fn refuse_itself(remote: &RemoteAddress, home: &Home) -> Result<(), Failure> {
    let RemoteAddress::Directory(directory) = remote else {
        return Ok(());
    };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match real(directory).is_some_and(|there| Some(there) == real(home.dir())) {
        true => Err(Failure::misuse(format!(
            "{} is this store itself; give another one",
            directory.display()
        ))),
        false => Ok(()),
    }
}

/// A push makes the other store. Without one, a rehearsal has nothing to compare with.
fn refuse_absent(remote: &RemoteAddress) -> Result<(), Failure> {
    match remote {
        RemoteAddress::Directory(directory) if !directory.exists() => {
            Err(Failure::not_found(format!(
                "there is no store at {} yet: all runs would be sent",
                directory.display()
            )))
        }
        _ => Ok(()),
    }
}

fn print(args: &ExchangeArgs, direction: Direction, done: &Exchanged) -> Result<(), Failure> {
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("dry_run", args.dry_run.into()),
                ("runs", Value::array(&done.runs)),
                ("known", done.known.into()),
                ("contents", done.contents.into()),
                ("bytes", done.bytes.into()),
                ("annotations", done.annotations.into()),
                (
                    "refused",
                    Value::array(done.refused.iter().map(|(run, why)| {
                        Value::Object(vec![
                            ("run", run.as_str().into()),
                            ("because", why.as_str().into()),
                        ])
                    })),
                ),
            ],
        ),
        false => writeln!(out, "{}", summary(args, direction, done)),
    })?;
    Ok(())
}

/// `pushed 3 runs and 12 contents (4.2 MB) to box:stores/mine; 10 runs were there already`
fn summary(args: &ExchangeArgs, direction: Direction, done: &Exchanged) -> String {
    let (verb, to, there) = match (direction, args.dry_run) {
        (Direction::Push, false) => ("pushed", "to", "there"),
        (Direction::Push, true) => ("would push", "to", "there"),
        (Direction::Pull, false) => ("pulled", "from", "here"),
        (Direction::Pull, true) => ("would pull", "from", "here"),
    };
    let remote = one_line(&args.remote.to_string());
    let mut line = format!(
        "{verb} {} and {} ({}) {to} {remote}",
        counted(done.runs.len(), "run", "runs"),
        counted(done.contents as usize, "content", "contents"),
        size(done.bytes),
    );
    if done.known > 0 {
        let verb = if done.known == 1 { "was" } else { "were" };
        line += &format!(
            "; {} {verb} {there} already",
            counted(done.known as usize, "run", "runs")
        );
    }
    if done.annotations > 0 {
        line += &match args.dry_run {
            true => format!(
                "; {} may get annotations",
                counted(done.annotations as usize, "run", "runs")
            ),
            false => format!(
                "; {} came",
                counted(done.annotations as usize, "annotation", "annotations")
            ),
        };
    }
    if !done.refused.is_empty() {
        line += &format!("; {} left out", counted(done.refused.len(), "run", "runs"));
    }
    line
}

/// Indexes runs that came in, and names those that fail.
fn index_new(home: &Home, store: &mut dyn Store) -> Result<Vec<String>, String> {
    let failed = index::bring_up_to_date(home, store, Busy::Wait, false);
    let failed = failed.map_err(|error| chain(&error))?;
    Ok(failed.iter().map(index::Bad::to_string).collect())
}
