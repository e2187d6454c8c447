//! Prints how many bytes of deep logs are heads, paths, input and so on, before compression.
//!
//! usage: `deep_parts [--csv FILE] [NAME=]LOG...`
//!
//! The table is Markdown, with a column for each name: by default, that of the file. Logs with the
//! same name are added. `--csv` also writes a row for each name and part.

use backstory_deep::{DeepLog, LogPart, LogParts, Volume};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// The logs of one name.
struct NamedLogs {
    name: String,
    parts: LogParts,
    volume: Volume,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut csv = None;
    if let [option, file, ..] = &words[..]
        && option == "--csv"
    {
        csv = Some(file.clone());
        words.drain(..2);
    }
    if words.is_empty() {
        return Err("usage: deep_parts [--csv FILE] [NAME=]LOG...".into());
    }
    let mut columns: Vec<NamedLogs> = Vec::new();
    for word in &words {
        add(&mut columns, word)?;
    }
    if let Some(file) = csv {
        std::fs::write(file, rows(&columns)?)?;
    }
    std::io::stdout().write_all(table(&columns)?.as_bytes())?;
    Ok(())
}

/// Reads a log, and adds it to those of its name.
fn add(columns: &mut Vec<NamedLogs>, word: &str) -> Result<(), Box<dyn Error>> {
    let (name, path) = match word.split_once('=') {
        Some((name, path)) => (name.to_owned(), Path::new(path)),
        None => {
            let path = Path::new(word);
            let stem = path.file_stem().unwrap_or_default();
            (stem.to_string_lossy().into_owned(), path)
        }
    };
    let log = DeepLog::open(path)?;
    let (parts, volume) = (log.parts(), log.volume());
    match columns.iter_mut().find(|known| known.name == name) {
        Some(known) => {
            known.parts += parts;
            known.volume += volume;
        }
        None => columns.push(NamedLogs {
            name,
            parts,
            volume,
        }),
    }
    Ok(())
}

/// A row for each name and part, and for the bytes of input and output.
fn rows(columns: &[NamedLogs]) -> Result<String, std::fmt::Error> {
    let mut out = "log,part,bytes\n".to_owned();
    for logs in columns {
        for (part, name) in LogPart::ALL {
            writeln!(out, "{},{name},{}", logs.name, logs.parts.bytes(part))?;
        }
        writeln!(out, "{},log,{}", logs.name, logs.parts.all())?;
        writeln!(out, "{},input and output,{}", logs.name, logs.volume.moved)?;
    }
    Ok(out)
}

/// The table of the parts that some log has, with their share of the log.
fn table(columns: &[NamedLogs]) -> Result<String, std::fmt::Error> {
    let mut out = "| part |".to_owned();
    for logs in columns {
        write!(out, " {} |", logs.name)?;
    }
    write!(out, "\n| --- |{}", " ---: |".repeat(columns.len()))?;
    for (part, name) in LogPart::ALL {
        if columns.iter().all(|logs| logs.parts.bytes(part) == 0) {
            continue;
        }
        write!(out, "\n| {name} |")?;
        for logs in columns {
            let bytes = logs.parts.bytes(part);
            let share = 100.0 * ratio(bytes, logs.parts.all());
            write!(out, " {bytes} ({share:.1} %) |")?;
        }
    }
    out += "\n| log |";
    for logs in columns {
        write!(out, " {} |", logs.parts.all())?;
    }
    out += "\n| input and output |";
    for logs in columns {
        write!(out, " {} |", logs.volume.moved)?;
    }
    out += "\n| log / input and output |";
    for logs in columns {
        let ratio = ratio(logs.parts.all(), logs.volume.moved);
        write!(out, " {ratio:.3} |")?;
    }
    out.push('\n');
    Ok(out)
}

fn ratio(bytes: u64, of: u64) -> f64 {
    bytes as f64 / of.max(1) as f64
}
