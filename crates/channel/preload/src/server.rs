//! The server of a program that nobody launched: `fencepost channel serve`, which reads the configuration, finds the
//! devices and keeps the segment. It is the launcher's code, in a process of its own.

use std::ffi::{CStr, CString, OsStr, OsString, c_int};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use fencepost_channel_core::{system, system_call};

use crate::orphan;

/// The variable with the command's path.
const COMMAND: &str = "FENCEPOST_COMMAND";
const NAME: &CStr = c"fencepost";
/// Where the command is, seen from the folder of this library: in a clone, and where a wheel is installed.
const PLACES: [&str; 2] = ["../../.venv/bin/fencepost", "../../../../../../../bin/fencepost"];
/// After so long without an answer there will be none: on an idle machine it takes half a second.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// What is read at a time.
const READ_BYTES: usize = 4096;

/// Why there is no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The program has rights that whoever started it does not have: it starts nothing that the environment names.
    Privileged,
    /// The command is not found, or cannot be started.
    NoCommand,
    /// The kernel has no process or descriptor left.
    NoProcess,
    /// It ended without an answer, and has said why.
    Ended,
    /// It did not answer in time.
    Silent,
}

/// A server that keeps a segment, also without rows in it, until this is dropped.
pub struct Server {
    /// What its programs have in their environment: `NAME=VALUE`, each with a zero byte behind it.
    variables: &'static [u8],
    _answer: OwnedFd,
}

impl Server {
    /// Starts one for the configuration of this path, or for the devices of this machine, and waits until it is ready.
    pub fn start(configuration: Option<&CStr>) -> Result<Server, Refusal> {
        // SAFETY: the function has no precondition.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            return Err(Refusal::Privileged);
        }
        let command = command().ok_or(Refusal::NoCommand)?;
        let mut arguments = vec![NAME, c"channel", c"serve"];
        if let Some(path) = configuration {
            arguments.extend([c"--config", path]);
        }
        let (answer, output) = pipe().map_err(|_| Refusal::NoProcess)?;
        orphan::start(&command, &arguments, output.as_fd()).map_err(|_| Refusal::NoProcess)?;
        drop(output);
        let line = read_line(&answer, system::now() + ANSWER_MAX)?;
        Ok(Server { variables: Vec::leak(assignments(&line)), _answer: answer })
    }

    /// A variable of its programs.
    pub fn variable(&self, name: &CStr) -> Option<&'static CStr> {
        let mut assigned = self.variables.split_inclusive(|byte| *byte == 0);
        assigned.find_map(|one| {
            let value = one.strip_prefix(name.to_bytes())?.strip_prefix(b"=")?;
            CStr::from_bytes_with_nul(value).ok()
        })
    }
}

/// The command's path: as the environment has it, near this library, or where shells look for it.
fn command() -> Option<CString> {
    let found = match std::env::var_os(COMMAND) {
        Some(named) => Some(PathBuf::from(named)).filter(|path| is_command(path)),
        None => near_library().or_else(in_path),
    };
    CString::new(found?.into_os_string().into_vec()).ok()
}

fn near_library() -> Option<PathBuf> {
    let library = fs::canonicalize(library()?).ok()?;
    let folder = library.parent()?;
    PLACES.iter().map(|place| folder.join(place)).find(|path| is_command(path))
}

fn in_path() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let name = OsStr::from_bytes(NAME.to_bytes());
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_command(path))
}

fn is_command(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The file that this code was loaded from.
fn library() -> Option<OsString> {
    // SAFETY: a structure of pointers, for which zero is a value.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here: fn() -> Option<OsString> = library;
    // SAFETY: `found` is valid.
    if unsafe { libc::dladdr(here as *const libc::c_void, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a library is a C string, and there for as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(OsStr::from_bytes(name.to_bytes()).to_owned())
}

/// Where to read, and where to write: neither is a standard stream, also where the program has closed its own.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: `ends` is valid.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both have just been opened, and nobody else has them.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // Duplicates are never below 3.
    Ok((read.try_clone()?, write.try_clone()?))
}

fn read_line(answer: &OwnedFd, end: Duration) -> Result<Vec<u8>, Refusal> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        await_readable(answer, end)?;
        let mut read = [0u8; READ_BYTES];
        // SAFETY: the buffer is valid for its length. By system calls: threads are not cancelled here.
        let length = unsafe { system_call!(libc::SYS_read, answer.as_raw_fd(), read.as_mut_ptr(), read.len()) };
        match usize::try_from(length) {
            Ok(0) => return Err(Refusal::Ended),
            Ok(length) => line.extend_from_slice(&read[..length]),
            Err(_) if is_interrupted() => {}
            Err(_) => return Err(Refusal::NoProcess),
        }
        if line.first() == Some(&orphan::NOT_STARTED) {
            return Err(Refusal::NoCommand);
        }
    }
    Ok(line)
}

fn await_readable(answer: &OwnedFd, end: Duration) -> Result<(), Refusal> {
    loop {
        let left = end.saturating_sub(system::now());
        let left = libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut polled = libc::pollfd { fd: answer.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mask = ptr::null::<u8>();
        // SAFETY: both structures are valid.
        match unsafe { system_call!(libc::SYS_ppoll, &raw mut polled, 1, &raw const left, mask, 0) } {
            0 => return Err(Refusal::Silent),
            1.. => return Ok(()),
            _ if is_interrupted() => {}
            _ => return Err(Refusal::NoProcess),
        }
    }
}

/// Whether a signal has ended the system call that just failed.
fn is_interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

/// A line of assignments as shells read them, each with a zero byte behind it in place of a space.
fn assignments(line: &[u8]) -> Vec<u8> {
    let mut quote = None;
    let mut said = Vec::with_capacity(line.len());
    for byte in line.iter().copied() {
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b' ' | b'\n') => said.push(0),
            _ => said.push(byte),
        }
    }
    said
}
