//! What is asked of the kernel: clocks, and which threads there are. Nothing here allocates or takes a lock.

use std::time::Duration;

/// A system call without the C library's function for it, which others may have replaced. All arguments are as wide as
/// registers: what is narrower would leave the rest of its place on the stack as it was.
#[macro_export]
macro_rules! system_call {
    ($number:expr $(, $argument:expr)*) => {
        libc::syscall($number $(, $argument as libc::c_long)*)
    };
}

/// The time of this clock.
fn clock(which: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(which, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Since the machine was started; no one sets it.
pub fn now() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// A time as words of a segment have it.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of the calling thread.
pub fn processor_time() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The number of the calling thread.
pub fn thread() -> u32 {
    // SAFETY: the system call has no precondition.
    unsafe { system_call!(libc::SYS_gettid) as u32 }
}

/// The number of the calling process.
pub fn process() -> u32 {
    // SAFETY: the system call has no precondition.
    unsafe { system_call!(libc::SYS_getpid) as u32 }
}

/// Whether the kernel has a thread of this number.
pub fn exists(thread: u32) -> bool {
    // SAFETY: signal 0 is not sent. `kill` finds processes by the number of any of their threads.
    let found = unsafe { system_call!(libc::SYS_kill, thread as libc::pid_t, 0) } == 0;
    // SAFETY: this thread's `errno`.
    found || unsafe { *libc::__errno_location() } == libc::EPERM
}

/// When a thread was started, in the kernel's ticks; 0 if there is none, or it has ended and nobody has waited for it.
pub fn started_ticks(process: u32, thread: u32) -> u64 {
    let mut path = [0u8; 64];
    let mut writer = Decimals { to: &mut path, length: 0 };
    writer.text(b"/proc/");
    writer.number(process);
    writer.text(b"/task/");
    writer.number(thread);
    writer.text(b"/stat\0");
    let mut text = [0u8; 512];
    let length = read_file(&path, &mut text);
    ticks_of(&text[..length]).unwrap_or(0)
}

/// The 22nd field of a thread's line of `/proc`; the second one, its name, may have anything in it, parentheses too.
fn ticks_of(text: &[u8]) -> Option<u64> {
    const STATE: usize = 0;
    const STARTED: usize = 19;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let state = fields.nth(STATE)?;
    if matches!(state, b"Z" | b"X") {
        return None;
    }
    let digits = fields.nth(STARTED - STATE - 1)?;
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

struct Decimals<'a> {
    to: &'a mut [u8],
    length: usize,
}

impl Decimals<'_> {
    fn text(&mut self, text: &[u8]) {
        self.to[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    fn number(&mut self, number: u32) {
        let mut digits = [0; 10];
        let (mut at, mut left) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.text(&digits[at..]);
    }
}

/// Reads the beginning of a file whose path ends with a zero byte. Returns how much.
pub fn read_file(path: &[u8], to: &mut [u8]) -> usize {
    debug_assert!(path.contains(&0));
    // SAFETY: the path is terminated; system calls and not functions of the C library, which others may have replaced.
    let file = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)
    };
    if file < 0 {
        return 0;
    }
    // SAFETY: `to` is valid for its length; the file is ours.
    let length = unsafe {
        let length = system_call!(libc::SYS_read, file, to.as_mut_ptr(), to.len());
        system_call!(libc::SYS_close, file);
        length
    };
    usize::try_from(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_exists_and_was_started() {
        assert!(exists(thread()));
        assert!(started_ticks(process(), thread()) > 0);
        assert_eq!(started_ticks(process(), u32::MAX), 0);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"7 (a) Z (b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(ticks_of(line), Some(4711));
        let ended = b"7 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(ticks_of(ended), None);
    }
}
