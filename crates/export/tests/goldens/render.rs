//! The output of a format as text: archives and tables unpacked, other bytes in hexadecimal.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};

/// The files of a directory, sorted by name.
pub fn directory(path: &Path) -> String {
    let mut paths = Vec::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => waiting.push(entry.path()),
                false => paths.push(entry.path()),
            }
        }
    }
    paths.sort();
    let mut out = String::new();
    for file_path in paths {
        let name = file_path.strip_prefix(path).unwrap().display();
        writeln!(out, "== {name}").unwrap();
        out.push_str(&file(&fs::read(&file_path).unwrap()));
    }
    out
}

/// One file.
pub fn file(bytes: &[u8]) -> String {
    if bytes.get(257..262) == Some(b"ustar") {
        return archive(bytes);
    }
    if bytes.starts_with(b"\x1f\x8b") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut plain)
            .unwrap();
        return format!("gzip\n{}", file(&plain));
    }
    if bytes.starts_with(b"SQLite format 3") {
        return database(bytes);
    }
    if bytes.starts_with(b"PAR1") {
        return table(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') && text.ends_with('\n') => text.to_owned(),
        Ok(text) if !text.contains('\0') => format!("{text}\n(no newline at the end)\n"),
        _ => dump(bytes),
    }
}

fn archive(bytes: &[u8]) -> String {
    let mut entries = Vec::new();
    for entry in tar::Archive::new(bytes).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let header = entry.header();
        let mut line = format!("-- {name} {:?}", header.entry_type());
        // A header with the file's type was made from the disk, with the tester's umask.
        let mode = header.mode().unwrap();
        if mode < 0o10000 {
            write!(line, " {mode:o}").unwrap();
        }
        if let Some(target) = entry.link_name_bytes() {
            write!(line, " -> {}", String::from_utf8_lossy(&target)).unwrap();
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        line.push('\n');
        if !content.is_empty() {
            line.push_str(&file(&content));
        }
        entries.push(line);
    }
    // A directory's order is the file system's.
    if bytes.starts_with(b"./") {
        entries.sort();
    }
    format!("tar\n{}", entries.concat())
}

fn database(bytes: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    fs::write(&path, bytes).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    let mut out = String::from("SQLite\n");
    let mut tables = database
        .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")
        .unwrap();
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let tables: Vec<(String, String)> = tables.unwrap().map(Result::unwrap).collect();
    for (name, sql) in tables {
        writeln!(out, "{sql}").unwrap();
        if !sql.starts_with("CREATE TABLE") {
            continue;
        }
        let mut rows = database.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<String> = (0..columns)
                .map(|at| format!("{:?}", row.get_ref(at).unwrap()))
                .collect();
            writeln!(out, "{}", values.join(" ")).unwrap();
        }
    }
    out
}

fn table(bytes: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let mut out = String::from("Parquet\n");
    let schema = reader.metadata().file_metadata().schema_descr();
    for column in schema.columns() {
        writeln!(
            out,
            "{} {:?} {:?}",
            column.path(),
            column.physical_type(),
            column.logical_type_ref()
        )
        .unwrap();
    }
    for row in reader.get_row_iter(None).unwrap() {
        writeln!(out, "{}", row.unwrap()).unwrap();
    }
    out
}

fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    for line in bytes.chunks(16) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain: String = line
            .iter()
            .map(|&byte| match byte {
                b' '..=b'~' => char::from(byte),
                _ => '.',
            })
            .collect();
        writeln!(out, "{:47}  {plain}", hex.join(" ")).unwrap();
    }
    out
}
