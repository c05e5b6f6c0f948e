//! System calls that a waiting thread may make (it yields, sleeps, or looks at a clock), and calls that a thread
//! returned from without a reason.

use crate::event::{Event, FutexOutcome};
use crate::info::ISA_AARCH64;

/// Tells them by their numbers.
pub(super) fn quiet_ones_of(isa: &str) -> fn(u64) -> bool {
    if isa == ISA_AARCH64 { is_quiet_on_aarch64 } else { is_quiet_on_x86_64 }
}

fn is_quiet_on_x86_64(number: u64) -> bool {
    const SCHED_YIELD: u64 = 24;
    const NANOSLEEP: u64 = 35;
    const GETTIMEOFDAY: u64 = 96;
    const FUTEX: u64 = 202;
    const CLOCK_GETTIME: u64 = 228;
    const CLOCK_NANOSLEEP: u64 = 230;
    matches!(number, SCHED_YIELD | NANOSLEEP | GETTIMEOFDAY | FUTEX | CLOCK_GETTIME | CLOCK_NANOSLEEP)
}

fn is_quiet_on_aarch64(number: u64) -> bool {
    const FUTEX: u64 = 98;
    const NANOSLEEP: u64 = 101;
    const CLOCK_GETTIME: u64 = 113;
    const CLOCK_NANOSLEEP: u64 = 115;
    const SCHED_YIELD: u64 = 124;
    const GETTIMEOFDAY: u64 = 169;
    matches!(number, SCHED_YIELD | NANOSLEEP | GETTIMEOFDAY | FUTEX | CLOCK_GETTIME | CLOCK_NANOSLEEP)
}

/// Whether a thread was woken, and nothing says by whom.
pub(super) fn is_woken_by_nobody(event: &Event) -> bool {
    matches!(
        event,
        Event::ConditionWait { wake: None, timed_out: false, .. }
            | Event::FutexWait { wake: None, outcome: FutexOutcome::Woken, .. }
    )
}
