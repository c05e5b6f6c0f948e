//! `fencepost-channel-keeper`: makes a segment, keeps it, says what is in it. Started by `fencepost channel`, and by
//! itself where it finds that it is the only one.

use std::error::Error;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fencepost_channel_core::joined;
use fencepost_channel_core::keeper::{Owners, Reaper, State};
use fencepost_channel_core::mapping;
use fencepost_channel_core::meter::{Means, Meter};
use fencepost_channel_core::segment::place::{Holder, Phase};
use fencepost_channel_core::segment::{Coherence, Row, Segment, Settings, Word};
use fencepost_channel_core::system;
use fencepost_channel_core::trigger::{self, Trigger};

const USAGE: &str = "fencepost-channel-keeper create|run|state|probe|stop SEGMENT";
const WRONG_INPUT: u8 = 2;
/// Keepers of a host: the owner, and one that stands by.
const KEEPERS: usize = 2;
/// A segment that nobody uses is removed after so long: its program may be just about to start.
const UNUSED_MAX: Duration = Duration::from_secs(1);

/// A row that no thread has: of a monitoring group that is made to see whether one can be.
const PROBED_ROW: usize = usize::MAX;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [command, segment] = arguments.as_slice() else {
        eprintln!("usage: {USAGE}");
        return ExitCode::from(WRONG_INPUT);
    };
    let path = Path::new(segment);
    let done = match command.to_str() {
        Some("create") => create(path),
        Some("run") => run(path),
        Some("state") => state(path),
        Some("probe") => probe(path),
        Some("stop") => open(path).map(Segment::stop),
        _ => Err(format!("usage: {USAGE}").into()),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("fencepost-channel-keeper: {}: {error}", path.display());
    ExitCode::from(WRONG_INPUT)
}

fn open(path: &Path) -> Result<Segment<'static>> {
    let words = mapping::map(&CString::new(path.as_os_str().as_bytes())?, coherence())?;
    Ok(Segment::open(words, host()?)?)
}

fn coherence() -> Coherence {
    match std::env::var_os("FENCEPOST_CHANNEL_COHERENCE") {
        Some(value) if value == OsStr::new("software") => Coherence::Software,
        _ => Coherence::Hardware,
    }
}

fn host() -> Result<usize> {
    Ok(std::env::var("FENCEPOST_CHANNEL_HOST").map_or(Ok(0), |host| host.parse())?)
}

/// Reads settings from standard input and makes the segment: whole, or not at all.
fn create(path: &Path) -> Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let settings: Settings = text.parse()?;
    let size = Segment::words(settings.hosts) * size_of::<Word>();
    // Hidden, so that nobody takes it for a segment that was left.
    let name = path.file_name().unwrap_or_default().display();
    let whole = path.with_file_name(format!(".{name}.{}", system::process()));
    let made = (|| -> Result<()> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&whole)?;
        file.set_len(size as u64)?;
        Segment::create(mapping::map(&CString::new(whole.as_os_str().as_bytes())?, coherence())?, &settings);
        // Fails where there is one already: another launcher was quicker.
        Ok(std::fs::hard_link(&whole, path)?)
    })();
    let _ = std::fs::remove_file(&whole);
    made
}

fn state(path: &Path) -> Result<()> {
    let mut text = State::read(open(path)?).json();
    text.push('\n');
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Prints what calls handlers here: the trigger that the environment asks for, or else the best one; `none` where that
/// does not work. The preloaded library decides in the same way. Fails where bytes are to be counted and cannot be.
fn probe(path: &Path) -> Result<()> {
    let segment = open(path)?;
    let means = Means::of(segment.source(), variable).ok_or("nothing says how bytes are counted")?;
    let meter = Meter::open(means, segment.fingerprint(), PROBED_ROW, system::thread());
    let meter = meter.ok_or("the kernel does not let us count bytes here")?;
    meter.close();
    let wanted = match std::env::var("FENCEPOST_CHANNEL_TRIGGER") {
        Ok(name) => Some(Trigger::named(&name).ok_or_else(|| format!("{name}: no such trigger"))?),
        Err(_) => None,
    };
    let quantum = means.quantum(segment.quantum(), segment.path_capacity(u32::MAX));
    let armed = trigger::arm(system::thread(), quantum, wanted);
    println!("{}", armed.trigger().name());
    trigger::disarm(armed);
    Ok(())
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    let value = std::env::var_os(OsStr::from_bytes(name.to_bytes()))?;
    // For as long as the process lives.
    Some(Box::leak(CString::new(value.as_bytes()).ok()?.into_boxed_c_str()))
}

/// Keeps the segment until nobody needs it; returns at once where enough others do.
fn run(path: &Path) -> Result<()> {
    ignore_signals();
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let segment = open(path)?;
    let mut reaper = Reaper::new(segment);
    reaper.look(system::now());
    let Some((me, holder)) = take_place(segment) else { return Ok(()) };
    keep(path, &file, segment, me, &mut reaper)?;
    segment.candidate(me).place().free(holder);
    Ok(())
}

fn take_place(segment: Segment<'static>) -> Option<(usize, Holder)> {
    if keepers(segment) >= KEEPERS {
        return None;
    }
    let mut places = segment.own_candidates();
    places.find_map(|at| segment.candidate(at).place().take(system::process()).map(|holder| (at, holder)))
}

fn keepers(segment: Segment<'_>) -> usize {
    let holders = segment.own_candidates().map(|at| segment.candidate(at).place().holder());
    holders.filter(|holder| holder.phase == Phase::Live && system::exists(holder.thread)).count()
}

fn keep(path: &Path, file: &File, segment: Segment<'static>, me: usize, reaper: &mut Reaper<'_>) -> Result<()> {
    let mut owners = Owners::new(segment, me);
    let interval = segment.timing().interval;
    let mut last = system::now();
    let (mut next, mut used_last) = (last, last);
    while !segment.is_stopped() {
        let now = system::now();
        owners.interval(now - last);
        last = now;
        if reaper.look(now) {
            if keepers(segment) < KEEPERS {
                start_another(path)?;
            }
            if has_rows(segment) || joined::is_joined(file) || !lock(file, libc::LOCK_EX) {
                used_last = now;
            } else if now > used_last + UNUSED_MAX {
                break;
            } else {
                lock(file, libc::LOCK_UN);
            }
        }
        next = (next + interval).max(now);
        std::thread::sleep(next.saturating_sub(system::now()));
    }
    // Also for the other keeper.
    segment.stop();
    remove(path, file);
    Ok(())
}

/// Whether any host has paced threads.
fn has_rows(segment: Segment<'_>) -> bool {
    segment.rows().any(|words| Row::place(words).holder().phase != Phase::Free)
}

/// Launchers hold a shared lock for as long as they live; the kernel takes it back from those that are killed.
fn lock(file: &File, kind: libc::c_int) -> bool {
    // SAFETY: the file is open.
    unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) == 0 }
}

/// Removes the segment's name, unless it is another one's by now.
fn remove(path: &Path, file: &File) {
    let is_ours = |path: &Path| -> io::Result<bool> {
        let (named, ours) = (std::fs::metadata(path)?, file.metadata()?);
        Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino()))
    };
    if is_ours(path).unwrap_or(false) {
        let _ = std::fs::remove_file(path);
    }
}

fn start_another(path: &Path) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn()?;
    Ok(())
}

/// Ctrl-C on the launcher's terminal is for programs; children are not waited for.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGCHLD] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
