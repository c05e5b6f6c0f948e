//! What the process knows: its segment, and whether it says itself what it uses.

use std::ffi::CStr;
use std::os::fd::IntoRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fencepost_channel_core::meter::Means;
use fencepost_channel_core::segment::{Coherence, Segment};
use fencepost_channel_core::trigger::Trigger;
use fencepost_channel_core::{joined, mapping};

use crate::rules;
use crate::server::{Refusal, Server};

const SEGMENT: &CStr = c"FENCEPOST_CHANNEL_SEGMENT";
const CONFIGURATION: &CStr = c"FENCEPOST_CHANNEL_CONFIG";
const COHERENCE: &CStr = c"FENCEPOST_CHANNEL_COHERENCE";
const HOST: &CStr = c"FENCEPOST_CHANNEL_HOST";
const NAME: &CStr = c"FENCEPOST_CHANNEL_NAME";
const TRIGGER: &CStr = c"FENCEPOST_CHANNEL_TRIGGER";
/// What the name of a configuration ends with, and that of a segment does not.
const OF_CONFIGURATIONS: &[u8] = b".toml";

static PROCESS: OnceLock<Segment<'static>> = OnceLock::new();
static MEANS: OnceLock<Option<Means>> = OnceLock::new();
static REPORTS: AtomicBool = AtomicBool::new(false);
static RULE: AtomicU32 = AtomicU32::new(0);
static WANTED: AtomicU32 = AtomicU32::new(Trigger::None as u32);

/// Why there is no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no server that would have made one.
    Unserved(Refusal),
    /// It cannot be mapped.
    Unreadable,
    /// It is none, or of another version.
    Wrong,
}

/// The segment, once there is one.
pub fn segment() -> Option<Segment<'static>> {
    PROCESS.get().copied()
}

/// Joins the segment of this path, or that of the server of this configuration. Without a path: those that the
/// environment names, or the segment of the server of this machine's devices. Changes nothing once there is a segment.
pub fn join(path: Option<&CStr>) -> Result<Segment<'static>, Missing> {
    match path {
        Some(path) if path.to_bytes().ends_with(OF_CONFIGURATIONS) => serve(Some(path)),
        Some(path) => attach(path, variable),
        None => attach_named().unwrap_or_else(|| serve(variable(CONFIGURATION))),
    }
}

/// Maps the segment that the environment names, if it does.
pub fn attach_named() -> Option<Result<Segment<'static>, Missing>> {
    Some(attach(variable(SEGMENT)?, variable))
}

/// Has a server make the segment, and joins it for as long as this process lives.
fn serve(configuration: Option<&CStr>) -> Result<Segment<'static>, Missing> {
    if let Some(segment) = segment() {
        return Ok(segment);
    }
    let server = Server::start(configuration).map_err(Missing::Unserved)?;
    let path = server.variable(SEGMENT).ok_or(Missing::Wrong)?;
    let joined = joined::join(path).map_err(|_| Missing::Unreadable)?;
    let segment = attach(path, |name| server.variable(name).or_else(|| variable(name)))?;
    // Open until the process ends.
    let _ = joined.into_raw_fd();
    Ok(segment)
}

/// Maps the segment of this path. Does nothing where there is one already.
fn attach(path: &CStr, variable: impl Fn(&CStr) -> Option<&'static CStr>) -> Result<Segment<'static>, Missing> {
    if let Some(segment) = segment() {
        return Ok(segment);
    }
    let is_software = variable(COHERENCE).is_some_and(|value| value.to_bytes() == b"software");
    let coherence = if is_software { Coherence::Software } else { Coherence::Hardware };
    let host = variable(HOST).and_then(|host| host.to_str().ok()?.parse().ok()).unwrap_or(0);
    let words = mapping::map(path, coherence).map_err(|_| Missing::Unreadable)?;
    let segment = Segment::open(words, host).map_err(|_| Missing::Wrong)?;
    if let Some(rule) = variable(NAME).and_then(|name| rules::rule_named(segment, name.to_bytes())) {
        RULE.store(rule as u32 + 1, Ordering::Relaxed);
    }
    if let Some(name) = variable(TRIGGER) {
        let wanted = name.to_str().ok().and_then(Trigger::named);
        WANTED.store(wanted.map_or(0, |trigger| trigger as u32), Ordering::Relaxed);
    }
    MEANS.get_or_init(|| Means::of(segment.source(), variable));
    Ok(*PROCESS.get_or_init(|| segment))
}

/// The rule that the launcher has for all threads of this program.
pub fn rule() -> Option<usize> {
    (RULE.load(Ordering::Relaxed) as usize).checked_sub(1)
}

/// With what the bytes of its threads are counted; `None` where the environment does not say it.
pub fn means() -> Option<Means> {
    *MEANS.get()?
}

/// The trigger that the environment asks for.
pub fn wanted_trigger() -> Option<Trigger> {
    Some(Trigger::of(WANTED.load(Ordering::Relaxed))).filter(|trigger| *trigger != Trigger::None)
}

/// Whether the program says what it uses.
pub fn reports() -> bool {
    REPORTS.load(Ordering::Relaxed)
}

/// The program has said what it used: from now on nothing is charged.
pub fn set_reports() {
    if !reports() {
        REPORTS.store(true, Ordering::Relaxed);
    }
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string. The value is read before `main`, or by `mchannel_init`, whose caller promises
    // that no thread changes the environment meanwhile.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: what `getenv` returns is a C string, if it is not null.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}
