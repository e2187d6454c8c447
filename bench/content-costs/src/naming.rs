//! The committed files of a git work tree: the parts of storing their contents, and of naming the
//! blobs of git instead.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstory_contents::{Contents, Place, digest_of};
use backstory_files::Digest;
use backstory_packages::{ContentStores, HeldFile, compare};
use sha1::{Digest as _, Sha1};

use crate::meter::measured;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The level of zstd in the store.
const LEVEL: i32 = 3;

/// The most notes of a measurement. Each waits for the disk several times.
const MOST_NOTES: usize = 100;

/// A committed file.
struct Tracked {
    path: PathBuf,
    content: Vec<u8>,
    digest: Digest,
    held: HeldFile,
}

impl Tracked {
    /// The file at an absolute path without links.
    fn of(path: PathBuf, stores: &mut ContentStores) -> Result<Tracked> {
        let no_blob = || format!("git has no blob of {}", path.display());
        let content = fs::read(&path)?;
        let held = stores.holder(&path).ok_or_else(no_blob)?;
        let (digest, _, same) = compare(&mut &content[..], &held.checksum)?;
        if !same {
            return Err(no_blob().into());
        }
        Ok(Tracked {
            path,
            content,
            digest,
            held,
        })
    }

    fn place(&self) -> Place {
        Place {
            store: self.held.store.to_owned(),
            path: self.held.path.clone(),
        }
    }
}

/// A part of the work on all of the files. It may make a store in the directory.
type Work = fn(&[Tracked], &Path) -> Result<()>;

/// The parts by their names in the results.
const PARTS: [(&str, Work); 9] = [
    ("read", read),
    ("blake3", blake3_alone),
    ("sha1", sha1_alone),
    ("zstd", zstd_alone),
    ("store", store),
    ("look-up", look_up),
    ("both-sums", both_sums),
    ("blob", blob),
    ("note", note),
];

/// Prints the costs of each part, for one file.
pub fn measure(rounds: usize, stores: &Path, tree: &Path) -> Result<()> {
    let files = tracked(&fs::canonicalize(tree)?)?;
    println!("part,round,files,wall_us,cpu_us");
    for round in 0..rounds {
        for turn in 0..PARTS.len() {
            let (name, work) = PARTS[(round + turn) % PARTS.len()];
            let some = match name {
                "note" => &files[..files.len().min(MOST_NOTES)],
                _ => &files[..],
            };
            let dir = stores.join(format!("{name}-{round}"));
            let (cost, done) = measured(|| work(some, &dir));
            done.map_err(|error| format!("{name}: {error}"))?;
            if dir.exists() {
                fs::remove_dir_all(&dir)?;
            }
            let of_one = |time: Duration| time.as_secs_f64() * 1e6 / some.len() as f64;
            let (wall, processor) = (of_one(cost.wall), of_one(cost.processor));
            println!("{name},{round},{},{wall:.3},{processor:.3}", some.len());
        }
    }
    Ok(())
}

/// The files of a work tree, which must all be as they were committed.
fn tracked(tree: &Path) -> Result<Vec<Tracked>> {
    let mut paths = Vec::new();
    files_below(tree, &mut paths)?;
    if paths.is_empty() {
        return Err(format!("{} has no files", tree.display()).into());
    }
    paths.sort();
    let mut stores = ContentStores::default();
    let files = paths.into_iter().map(|path| Tracked::of(path, &mut stores));
    files.collect()
}

/// Adds the regular files below a directory, except those of git itself.
fn files_below(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.file_name() != ".git" {
            files_below(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn read(files: &[Tracked], _: &Path) -> Result<()> {
    for file in files {
        black_box(fs::read(&file.path)?);
    }
    Ok(())
}

fn blake3_alone(files: &[Tracked], _: &Path) -> Result<()> {
    for file in files {
        black_box(blake3::hash(&file.content));
    }
    Ok(())
}

/// The id of the blob, which has its size before the content.
fn sha1_alone(files: &[Tracked], _: &Path) -> Result<()> {
    for file in files {
        let sum = Sha1::new().chain_update(format!("blob {}\0", file.content.len()));
        black_box(sum.chain_update(&file.content).finalize());
    }
    Ok(())
}

fn zstd_alone(files: &[Tracked], _: &Path) -> Result<()> {
    let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
    for file in files {
        black_box(packer.compress(&file.content)?);
    }
    Ok(())
}

/// Stores the contents as the background process does: BLAKE3, zstd, records in a pack, one sync.
fn store(files: &[Tracked], dir: &Path) -> Result<()> {
    let contents = Contents::create(dir)?;
    for file in files {
        contents.put_bytes_after(&file.content, &mut || None)?;
    }
    Ok(contents.sync()?)
}

/// Looks for the blobs: reads the trees of the commit, and the size of each blob.
fn look_up(files: &[Tracked], _: &Path) -> Result<()> {
    let mut stores = ContentStores::default();
    for file in files {
        black_box(stores.holder(&file.path).ok_or("the blob is gone")?);
    }
    Ok(())
}

/// Compares a file with the id of its blob, and computes its BLAKE3 by the way.
fn both_sums(files: &[Tracked], _: &Path) -> Result<()> {
    for file in files {
        let (_, _, same) = compare(&mut &file.content[..], &file.held.checksum)?;
        if !same {
            return Err("the file is not its blob".into());
        }
    }
    Ok(())
}

/// Reads the blob, to be sure that git has this content.
fn blob(files: &[Tracked], _: &Path) -> Result<()> {
    for file in files {
        let (_, mut object) = file.place().open()?;
        if digest_of(&mut object)?.0 != file.digest {
            return Err("the blob has another content".into());
        }
    }
    Ok(())
}

/// Writes a note of the place of each content.
fn note(files: &[Tracked], dir: &Path) -> Result<()> {
    let contents = Contents::create(dir)?;
    for file in files {
        let size = file.content.len() as u64;
        contents.refer(&file.digest, size, &file.place())?;
    }
    Ok(contents.sync()?)
}
