//! Packages by their paths: layouts that the tools themselves made where they are installed.

use super::installed::{done, there};
use super::*;
use std::process::Command;

pub fn name(packages: &mut Packages, path: &Path) -> Option<String> {
    let package = packages.package(path.as_os_str().as_encoded_bytes())?;
    Some(package.to_string())
}

/// A build backend that needs no other package: pip itself makes the editable installation.
const BACKEND: &str = r#"
import zipfile, os
def build_editable(directory, config_settings=None, metadata_directory=None):
    name = "my_tool-0.3-py3-none-any.whl"
    info = "my_tool-0.3.dist-info/"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("__editable__.my_tool.pth", os.getcwd() + "\n")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: My-Tool\nVersion: 0.3\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "__editable__.my_tool.pth,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n")
    return name
build_wheel = build_editable
"#;

const PROJECT: &str =
    "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";

#[test]
fn a_virtual_environment_has_the_packages_that_pip_installed_and_python_itself() {
    if !there("python3", "packages of a virtual environment") {
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    let venv = root.join("env");
    done(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let library = std::fs::read_dir(venv.join("lib"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let site = library.join("site-packages");
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &Path| name(&mut packages, path);
    for file in [
        site.join("pip/__init__.py"),
        site.join("pip/__pycache__/x.cpython-311.pyc"),
        venv.join("bin/pip3"),
    ] {
        let pip = of(&file).unwrap();
        assert!(
            pip.starts_with("pip ") && pip.ends_with(" (venv)"),
            "{file:?}: {pip}"
        );
    }
    for file in [
        venv.join("pyvenv.cfg"),
        venv.join("bin/activate"),
        venv.join("bin/python3"),
    ] {
        let python = of(&file).unwrap();
        assert!(
            python.starts_with("python 3.") && python.ends_with(" (venv)"),
            "{file:?}: {python}"
        );
    }
    assert_eq!(
        of(&venv.join("notes.txt")),
        None,
        "a file that the user put there"
    );

    // The sources of an editable installation are the user's own.
    write(&root, "tool/pyproject.toml", PROJECT);
    write(&root, "tool/backend.py", BACKEND);
    write(&root, "tool/mytool.py", "");
    done(
        Command::new(venv.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--no-index",
                "--no-build-isolation",
                "--editable",
            ])
            .arg(root.join("tool"))
            .current_dir(&root),
    );
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &Path| name(&mut packages, path);
    assert_eq!(of(&root.join("tool/mytool.py")), None);
    let pointer = site.join("__editable__.my_tool.pth");
    assert!(pointer.is_file());
    assert_eq!(of(&pointer), Some("My-Tool 0.3 (venv)".to_owned()));
}

#[test]
fn a_distribution_is_named_by_its_metadata_and_by_its_path_when_it_is_gone() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    let site = ".local/lib/python3.11/site-packages";
    write(
        &root,
        &format!("{site}/ruamel.yaml-0.18.5.dist-info/RECORD"),
        "ruamel/yaml/main.py,,\n",
    );
    write(
        &root,
        &format!("{site}/ruamel.yaml-0.18.5.dist-info/METADATA"),
        "Metadata-Version: 2.1\nName: ruamel.yaml\n",
    );
    write(
        &root,
        &format!("{site}/six-1.16.0-py3.11.egg-info"),
        "Name: six\n",
    );
    write(
        &root,
        &format!("{site}/old-1.0-py3.11.egg-info/installed-files.txt"),
        "../old/a.py\n",
    );
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(
        of(&format!("{site}/ruamel/yaml/main.py")),
        is("ruamel.yaml 0.18.5 (user)")
    );
    assert_eq!(
        of(&format!("{site}/six-1.16.0-py3.11.egg-info")),
        is("six 1.16.0 (user)")
    );
    assert_eq!(of(&format!("{site}/old/a.py")), is("old 1.0 (user)"));
    assert_eq!(of(&format!("{site}/mine.py")), None);
    let gone = "gone/.venv/lib/python3.11/site-packages";
    assert_eq!(of(&format!("{gone}/numpy/core/x.py")), is("numpy (venv)"));
    assert_eq!(
        of(&format!("{gone}/numpy-1.26.4.dist-info/METADATA")),
        is("numpy 1.26.4 (venv)")
    );
}

#[test]
fn npm_packages_are_named_scoped_linked_and_gone_ones_too() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    if there("npm", "packages that npm itself unpacked") {
        write(
            &root,
            "lib/package.json",
            "{\"name\":\"@s/lib\",\"version\":\"1.2.3\",\"bin\":{\"shout\":\"cli/shout.js\"}}",
        );
        write(&root, "lib/index.js", "");
        write(&root, "lib/cli/shout.js", "#!/usr/bin/env node\n");
        write(
            &root,
            "app/package.json",
            "{\"name\":\"app\",\"version\":\"0.0.1\",\"workspaces\":[\"own\"]}",
        );
        write(
            &root,
            "app/own/package.json",
            "{\"name\":\"own\",\"version\":\"0.0.1\"}",
        );
        write(&root, "app/own/index.js", "");
        done(
            Command::new("npm")
                .args(["pack", "--silent"])
                .current_dir(root.join("lib")),
        );
        let install = [
            "install",
            "--silent",
            "--offline",
            "--no-audit",
            "--no-fund",
            "../lib/s-lib-1.2.3.tgz",
        ];
        done(
            Command::new("npm")
                .args(install)
                .current_dir(root.join("app")),
        );
        let mut packages = Packages::new("/".as_ref());
        let mut of = |path: &str| name(&mut packages, &root.join(path));
        assert_eq!(
            of("app/node_modules/@s/lib/index.js"),
            Some("@s/lib 1.2.3 (npm)".to_owned())
        );
        assert_eq!(
            of("app/node_modules/.bin/shout"),
            Some("@s/lib 1.2.3 (npm)".to_owned())
        );
        assert!(root.join("app/node_modules/own/index.js").is_file());
        assert_eq!(
            of("app/node_modules/own/index.js"),
            None,
            "a package of the workspace"
        );
        assert_eq!(of("app/node_modules/.package-lock.json"), None);
    }
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(
        of("gone/node_modules/left-pad/index.js"),
        is("left-pad (npm)")
    );
    assert_eq!(
        of("gone/node_modules/.pnpm/@s+x@1.2.3_react@18.0.0/node_modules/@s/x/a.js"),
        is("@s/x 1.2.3 (npm)")
    );
}

#[test]
fn a_program_of_npm_is_named_by_the_package_that_its_link_leads_to() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    let stored = "node_modules/.pnpm/@s+x@1.2.3_react@18.0.0/node_modules/@s/x";
    for (directory, name, version) in [
        ("node_modules/esbuild", "esbuild", "0.25.0"),
        ("own", "own", "0.0.1"),
        (stored, "@s/x", "1.2.3"),
    ] {
        let package = format!("{{\"name\":\"{name}\",\"version\":\"{version}\"}}");
        write(&root, &format!("{directory}/package.json"), &package);
        write(&root, &format!("{directory}/bin/run"), "");
    }
    write(&root, "node_modules/.bin/script", "#!/bin/sh\n");
    fs::create_dir(root.join("node_modules/@s")).unwrap();
    for (link, target) in [
        ("own", "../own"),
        ("@s/x", &*format!("../../{stored}")),
        (".bin/esbuild", "../esbuild/bin/run"),
        (".bin/own", "../own/bin/run"),
        (".bin/x", "../@s/x/bin/run"),
        (".bin/gone", "../gone/bin/run"),
    ] {
        std::os::unix::fs::symlink(target, root.join("node_modules").join(link)).unwrap();
    }
    let mut packages = Packages::new("/".as_ref());
    let mut of = |program: &str| {
        let path = root.join("node_modules/.bin").join(program);
        name(&mut packages, &path)
    };
    assert_eq!(of("esbuild"), Some("esbuild 0.25.0 (npm)".to_owned()));
    assert_eq!(of("x"), Some("@s/x 1.2.3 (npm)".to_owned()));
    assert_eq!(of("own"), None, "a package of the workspace");
    assert_eq!(of("script"), None);
    assert_eq!(of("gone"), None);
}

#[test]
fn conda_names_what_its_records_list_and_what_python_compiled_of_it() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    write(
        &root,
        "env/conda-meta/numpy-1.26-0.json",
        "{\"name\":\"numpy\",\"version\":\"1.26\",\"files\":[\"lib/n/a.py\",\"lib/n/\\u00e9.py\"],\"depends\":[]}",
    );
    write(&root, "env/conda-meta/history", "");
    let mut packages = Packages::new("/".as_ref());
    let mut of = |path: &str| name(&mut packages, &root.join(path));
    let numpy = Some("numpy 1.26 (conda)".to_owned());
    assert_eq!(of("env/lib/n/a.py"), numpy);
    assert_eq!(of("env/lib/n/é.py"), numpy);
    assert_eq!(of("env/lib/n/__pycache__/a.cpython-311.pyc"), numpy);
    assert_eq!(of("env/mine.py"), None);
}

#[test]
fn system_packages_are_named_without_their_architecture() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    write(
        root,
        "var/lib/dpkg/info/libc6:amd64.list",
        "/.\n/lib/x/libc.so.6\n",
    );
    write(
        root,
        "var/lib/dpkg/status",
        "Package: libc6\nArchitecture: amd64\nVersion: 2.36-9\n",
    );
    let mut packages = Packages::new(root);
    let found = packages.package(b"/usr/lib/x/libc.so.6").unwrap();
    assert_eq!(found.to_string(), "libc6 2.36-9");
    assert_eq!(packages.package(b"/home/u/lib/x/libc.so.6"), None);
}

#[test]
fn a_crate_is_named_by_its_directory_even_when_it_is_gone() {
    let mut packages = Packages::new("/".as_ref());
    let gone = b"/gone/.cargo/registry/src/index.crates.io-6f/serde_json-1.0.1+x/src/lib.rs";
    let found = packages.package(gone).unwrap();
    assert_eq!(found.to_string(), "serde_json 1.0.1+x (cargo)");
}
