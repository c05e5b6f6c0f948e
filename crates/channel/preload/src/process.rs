//! What the process knows: its segment, and whether it says itself what it uses.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fencepost_channel_core::mapping;
use fencepost_channel_core::meter::Means;
use fencepost_channel_core::segment::{Coherence, Segment};
use fencepost_channel_core::trigger::Trigger;

use crate::rules;

const SEGMENT: &std::ffi::CStr = c"FENCEPOST_CHANNEL_SEGMENT";
const COHERENCE: &std::ffi::CStr = c"FENCEPOST_CHANNEL_COHERENCE";
const HOST: &std::ffi::CStr = c"FENCEPOST_CHANNEL_HOST";
const NAME: &std::ffi::CStr = c"FENCEPOST_CHANNEL_NAME";
const TRIGGER: &std::ffi::CStr = c"FENCEPOST_CHANNEL_TRIGGER";

static PROCESS: OnceLock<Segment<'static>> = OnceLock::new();
static MEANS: OnceLock<Option<Means>> = OnceLock::new();
static REPORTS: AtomicBool = AtomicBool::new(false);
static RULE: AtomicU32 = AtomicU32::new(0);
static WANTED: AtomicU32 = AtomicU32::new(Trigger::None as u32);

/// Why there is no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// None is named.
    Unnamed,
    /// It cannot be mapped.
    Unreadable,
    /// It is none, or of another version.
    Wrong,
}

/// The segment, once there is one.
pub fn segment() -> Option<Segment<'static>> {
    PROCESS.get().copied()
}

/// Maps the segment that the path, or else the environment, names. Does nothing where there is one already.
pub fn attach(path: Option<&std::ffi::CStr>) -> Result<Segment<'static>, Missing> {
    if let Some(segment) = segment() {
        return Ok(segment);
    }
    let named = path.or_else(|| variable(SEGMENT)).ok_or(Missing::Unnamed)?;
    let is_software = variable(COHERENCE).is_some_and(|value| value.to_bytes() == b"software");
    let coherence = if is_software { Coherence::Software } else { Coherence::Hardware };
    let host = variable(HOST).and_then(|host| host.to_str().ok()?.parse().ok()).unwrap_or(0);
    let words = mapping::map(named, coherence).map_err(|_| Missing::Unreadable)?;
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

fn variable(name: &std::ffi::CStr) -> Option<&'static std::ffi::CStr> {
    // SAFETY: the name is a C string. The value is read before `main`, or by `mchannel_init`, whose caller promises
    // that no thread changes the environment meanwhile.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: what `getenv` returns is a C string, if it is not null.
    (!value.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(value) })
}
