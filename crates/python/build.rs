//! Names the simulator by what decides its results: the digest of our crates' sources and of the lock file. A quick
//! build, an optimised one and another machine's build of one commit are the same simulator.

use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh64::Xxh64;

/// Has nothing that is simulated.
const LEFT_OUT: &str = "channel";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("Cargo.lock")];
    for entry in read(&root.join("crates")) {
        if entry.file_name().is_some_and(|name| name != LEFT_OUT) {
            println!("cargo::rerun-if-changed={}", entry.join("src").display());
            collect(&entry.join("src"), &mut files);
            println!("cargo::rerun-if-changed={}", entry.join("Cargo.toml").display());
            files.push(entry.join("Cargo.toml"));
        }
    }
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    let mut digest = Xxh64::new(0);
    for file in files {
        let contents = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(&root).expect("below the root").display().to_string();
        for part in [name.as_bytes(), &contents] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    println!("cargo::rustc-env=FENCEPOST_SIMULATOR={:016x}", digest.digest());
    println!("cargo::rustc-env=FENCEPOST_BUILD={}", profile());
}

/// The name of cargo's profile, which is that of the folder in which this is built: target/PROFILE/build/…
fn profile() -> String {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says it"));
    let above = out.ancestors().find(|path| path.file_name().is_some_and(|name| name == "build"));
    let name = above.and_then(Path::parent).and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The sources below a folder, tests beside them left out: they decide nothing.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in read(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            collect(&path, files);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// What is in a folder, in the order of the names.
fn read(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    paths
}
