//! Puts the built page where `rust-embed` takes it from: each file of `web/dist`, compressed, into
//! `$OUT_DIR/page`. Without `web/dist` the directory stays empty, and the program says that it was
//! built without the page. The page is built by `scripts/page`, which needs Node. While
//! `scripts/with-page` builds it, this script waits. The description of the interface,
//! `web/openapi.json`, is compressed into `$OUT_DIR/openapi.json.gz`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let dist = Path::new("web/dist");
    for source in ["dist", "src", "index.html", "package-lock.json"] {
        let source = Path::new("web").join(source);
        // A packaged crate has the page without its sources.
        if source == dist || source.exists() {
            println!("cargo::rerun-if-changed={}", source.display());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(building) = fs::File::open("web/.building") {
        building.lock_shared()?;
    }
    let description = "web/openapi.json";
    println!("cargo::rerun-if-changed={description}");
    let out = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let compressed = Path::new(&out).join("openapi.json.gz");
    fs::write(compressed, gzip(&fs::read(description)?)?)?;
    let page = Path::new(&out).join("page");
    if page.exists() {
        fs::remove_dir_all(&page)?;
    }
    fs::create_dir_all(&page)?;
    if dist.join("index.html").is_file() {
        compress(dist, &page)?;
    }
    Ok(())
}

/// Writes each file below `from` into `to` with `.gz` at the end of its name. Source maps are left
/// out.
fn compress(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            compress(&path, &to.join(name))?;
            continue;
        }
        if path.extension().is_some_and(|ending| ending == "map") {
            continue;
        }
        let mut target = name;
        target.push(".gz");
        fs::write(to.join(target), gzip(&fs::read(&path)?)?)?;
    }
    Ok(())
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}
