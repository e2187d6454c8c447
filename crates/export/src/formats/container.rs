//! Container images with only the files that the run used.
//!
//! One layer has the files of packages and tools, another those of the user. The image starts the
//! recorded command with the same arguments, directory and environment.

use backstory_ordering::SmallSort;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha1::Digest;

use super::notation::{self, moment, text};
use crate::family::Family;
use crate::format::{Format, Shape, Target};
use crate::image_tree::{ImageTree, is_own};
use crate::unfinished::{ScratchDirectory, make_below};
use crate::{Result, View};

/// `oci`
pub struct Oci;

/// `oci-archive`
pub struct OciArchive;

/// `docker-archive`
pub struct DockerArchive;

/// `dockerfile`
pub struct Dockerfile;

/// The layers: a comment for the image's `history`, and whether the layer has the user's files.
const LAYERS: [(&str, bool); 2] = [("packages and tools", false), ("the user's files", true)];

impl Format for Oci {
    fn name(&self) -> &'static str {
        "oci"
    }
    fn about(&self) -> &'static str {
        "a container image of what was used, as an OCI layout"
    }
    fn family(&self) -> Family {
        Family::Container
    }
    fn proven_by(&self) -> &'static str {
        "podman"
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }
    fn needs_contents(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("podman run oci:OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = target.directory();
        layout(&ImageTree::of(view, self.name())?, directory)
    }
}

impl Format for OciArchive {
    fn name(&self) -> &'static str {
        "oci-archive"
    }
    fn about(&self) -> &'static str {
        "the same in one file"
    }
    fn family(&self) -> Family {
        Family::Container
    }
    fn proven_by(&self) -> &'static str {
        "podman"
    }
    fn needs_contents(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("podman run oci-archive:OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = ScratchDirectory::anywhere()?;
        layout(&ImageTree::of(view, self.name())?, directory.path())?;
        let mut tar = deterministic(target.stream());
        append_sorted(&mut tar, directory.path(), Path::new(""))?;
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

/// An archive without the times, owners and modes of this machine's files: two exports of one run
/// are the same bytes.
pub fn deterministic<W: Write>(out: W) -> tar::Builder<W> {
    let mut tar = tar::Builder::new(out);
    tar.mode(tar::HeaderMode::Deterministic);
    tar
}

/// Appends everything below the directory `top`, in the order of its names. `inside`: the part of
/// it, as the archive names it.
fn append_sorted(tar: &mut tar::Builder<impl Write>, top: &Path, inside: &Path) -> io::Result<()> {
    let entries = std::fs::read_dir(top.join(inside))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_small();
    for name in names {
        let inside = inside.join(name);
        let path = top.join(&inside);
        match path.is_dir() {
            true => {
                tar.append_dir(&inside, &path)?;
                append_sorted(tar, top, &inside)?;
            }
            false => tar.append_path_with_name(path, &inside)?,
        }
    }
    Ok(())
}

impl Format for DockerArchive {
    fn name(&self) -> &'static str {
        "docker-archive"
    }
    fn about(&self) -> &'static str {
        "the same as Docker saves images"
    }
    fn family(&self) -> Family {
        Family::Container
    }
    fn proven_by(&self) -> &'static str {
        "podman"
    }
    fn needs_contents(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("docker load -i OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let tree = ImageTree::of(view, self.name())?;
        let directory = ScratchDirectory::anywhere()?;
        let layers = layers(&tree, directory.path())?;
        let config = serde_json::to_vec(&config(&tree, &layers)?).map_err(io::Error::from)?;
        let config_name = format!("{}.json", HEXLOWER.encode(&sha2::Sha256::digest(&config)));
        let names: Vec<String> = layers
            .iter()
            .map(|layer| format!("{}.tar", layer.digest))
            .collect();
        let tag = format!("backstory/{}:latest", tree.run.summary.id);
        let manifest = json!([{"Config": config_name, "RepoTags": [tag], "Layers": names}]);
        let manifest = serde_json::to_vec(&manifest).map_err(io::Error::from)?;
        let mut tar = deterministic(target.stream());
        for (layer, name) in layers.iter().zip(&names) {
            tar.append_path_with_name(directory.path().join(&layer.digest), name)?;
        }
        for (name, bytes) in [
            (config_name.as_str(), &config),
            ("manifest.json", &manifest),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes.as_slice())?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

impl Format for Dockerfile {
    fn name(&self) -> &'static str {
        "dockerfile"
    }
    fn about(&self) -> &'static str {
        "a Dockerfile and what it adds"
    }
    fn family(&self) -> Family {
        Family::Container
    }
    fn proven_by(&self) -> &'static str {
        "podman build"
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }
    fn needs_contents(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("docker build OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = target.directory();
        let tree = ImageTree::of(view, self.name())?;
        let mut file = format!(
            "# {}, as recorded: {} and nothing else.\nFROM scratch\n",
            view.subject, "what it used"
        );
        for (at, layer) in layers(&tree, directory)?.iter().enumerate() {
            let name = format!("layer{at}.tar");
            fs::rename(directory.join(&layer.digest), directory.join(&name))?;
            // `ADD` unpacks a local archive.
            file.push_str(&format!("# {}\nADD {name} /\n", layer.about));
        }
        for variable in &tree.run.environment {
            if let Some((name, value)) = text(variable).split_once('=') {
                // Values are escaped for Docker. A Dockerfile cannot express a value with several
                // lines.
                if !value.contains(['\n', '\r'])
                    && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
                {
                    let value = value
                        .replace('\\', "\\\\")
                        .replace('"', "\\\"")
                        .replace('$', "\\$");
                    file.push_str(&format!("ENV {name}=\"{value}\"\n"));
                }
            }
        }
        let command = Value::from(words(&tree));
        file.push_str(&format!(
            "WORKDIR {}\nENTRYPOINT {command}\n",
            text(&tree.run.summary.cwd)
        ));
        fs::write(directory.join("Dockerfile"), file)?;
        Ok(())
    }
}

/// A layer in a file that is named by its digest.
struct Layer {
    digest: String,
    size: u64,
    about: &'static str,
}

/// A writer that computes the digest and size of all bytes.
struct Summing<W> {
    to: W,
    sum: sha2::Sha256,
    size: u64,
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes the layers into `directory`.
fn layers(tree: &ImageTree<'_>, directory: &Path) -> Result<Vec<Layer>> {
    let mut all = Vec::new();
    tree.expect();
    for (about, own) in LAYERS {
        let path = directory.join("layer.part");
        let mut out = Summing {
            to: io::BufWriter::new(File::create(&path)?),
            sum: sha2::Sha256::new(),
            size: 0,
        };
        tree.archive(&mut out, "", |path, node| is_own(path, node) == own)?;
        let digest = HEXLOWER.encode(&out.sum.finalize());
        fs::rename(&path, directory.join(&digest))?;
        let size = out.size;
        all.push(Layer {
            digest,
            size,
            about,
        });
    }
    Ok(all)
}

fn words(tree: &ImageTree<'_>) -> Vec<String> {
    tree.run
        .summary
        .command
        .iter()
        .map(|word| text(word))
        .collect()
}

/// The image's configuration (OCI image specification 1.1, `config.md`).
fn config(tree: &ImageTree<'_>, layers: &[Layer]) -> Result<Value> {
    let summary = &tree.run.summary;
    let created = moment(summary.started);
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    let history = layers.iter().map(
        |layer| json!({"created": created, "created_by": notation::TOOL, "comment": layer.about}),
    );
    let environment: Vec<String> = tree
        .run
        .environment
        .iter()
        .map(|variable| text(variable))
        .collect();
    Ok(json!({
        "created": created, "architecture": architecture, "os": "linux",
        "config": {
            "Env": environment, "Entrypoint": words(tree), "WorkingDir": text(&summary.cwd),
            "Labels": {"org.opencontainers.image.title": format!("run {}", summary.id)},
        },
        "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| format!("sha256:{}", layer.digest)).collect::<Vec<_>>()},
        "history": history.collect::<Vec<_>>(),
    }))
}

/// Writes an image layout (OCI image specification 1.1, `image-layout.md`).
fn layout(tree: &ImageTree<'_>, directory: &Path) -> Result<()> {
    let blobs = directory.join("blobs/sha256");
    make_below(directory, &blobs)?;
    let layers = layers(tree, &blobs)?;
    let blob = |value: &Value, kind: &str| -> Result<Value> {
        let bytes = serde_json::to_vec(value).map_err(io::Error::from)?;
        let digest = HEXLOWER.encode(&sha2::Sha256::digest(&bytes));
        fs::write(blobs.join(&digest), &bytes)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
    };
    let config = blob(
        &config(tree, &layers)?,
        "application/vnd.oci.image.config.v1+json",
    )?;
    let layers: Vec<Value> = layers
        .iter()
        .map(|layer| {
            json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": format!("sha256:{}", layer.digest),
                   "size": layer.size})
        })
        .collect();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers});
    let mut manifest = blob(&manifest, kind)?;
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]});
    fs::write(
        directory.join("index.json"),
        serde_json::to_vec(&index).map_err(io::Error::from)?,
    )?;
    fs::write(
        directory.join("oci-layout"),
        "{\"imageLayoutVersion\":\"1.0.0\"}",
    )?;
    Ok(())
}
