//! Files that are there to be read: a named pipe would be waited for, and a device may have no end.

use std::fs::{File, FileType, metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens the file of that path.
///
/// # Errors
/// If it is not an ordinary file, with what it is instead; or as [`File::open`].
pub fn open(path: &Path) -> io::Result<File> {
    match kind_of(metadata(path)?.file_type()) {
        None => File::open(path),
        Some(kind) => Err(io::Error::other(format!("it is {kind}, and has to be an ordinary file"))),
    }
}

/// What is no ordinary file.
fn kind_of(file: FileType) -> Option<&'static str> {
    Some(match file {
        file if file.is_file() => return None,
        file if file.is_dir() => "a folder",
        file if file.is_fifo() => "a named pipe",
        file if file.is_socket() => "a socket",
        _ => "a device",
    })
}
