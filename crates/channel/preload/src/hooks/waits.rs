//! Calls that end early when a signal is handled, whatever its handler asks for (signal(7)).
//!
//! The best trigger never comes while a thread is in the kernel. With the others, their signal waits while the thread
//! does: a time limit runs on as it would, signals of the program come through, and nothing is restarted by us.

use std::ffi::{c_int, c_long, c_uint, c_void};

use fencepost_channel_core::trigger::Trigger;

use super::signals::without_ours;
use crate::channel;
use crate::next::next;
use crate::signal_mask::{Blocked, Mask, OURS};

fn has_to_wait() -> bool {
    channel::trigger().is_some_and(Trigger::interrupts_system_calls)
}

/// Blocks the trigger's signal for as long as the guard lives, if it could end a wait.
fn guard() -> Option<Blocked> {
    has_to_wait().then(Blocked::new)
}

/// Replaces functions that wait by themselves with the signal blocked.
macro_rules! waits {
    ($($place:ident = $text:literal: $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(
            next!($place = $text as fn($($kind),*) -> $result);

            /// # Safety
            /// What the function demands whose place it takes.
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> $result {
                let _blocked = guard();
                // SAFETY: the caller's own call.
                unsafe { $place::get()($($argument),*) }
            }
        )*

        fn find_plain() {
            $($place::NEXT.find();)*
        }
    };
}

waits! {
    poll_next = c"poll": poll(files: *mut libc::pollfd, count: libc::nfds_t, limit_ms: c_int) -> c_int;
    select_next = c"select": select(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set,
        limit: *mut libc::timeval
    ) -> c_int;
    epoll_wait_next = c"epoll_wait": epoll_wait(
        file: c_int, events: *mut libc::epoll_event, most: c_int, limit_ms: c_int
    ) -> c_int;
    nanosleep_next = c"nanosleep": nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int;
    clock_nanosleep_next = c"clock_nanosleep": clock_nanosleep(
        clock: libc::clockid_t, flags: c_int, time: *const libc::timespec, left: *mut libc::timespec
    ) -> c_int;
    usleep_next = c"usleep": usleep(time_us: c_uint) -> c_int;
    sleep_next = c"sleep": sleep(seconds: c_uint) -> c_uint;
    pause_next = c"pause": pause() -> c_int;
    sem_timedwait_next = c"sem_timedwait": sem_timedwait(
        semaphore: *mut libc::sem_t, end: *const libc::timespec
    ) -> c_int;
    semop_next = c"semop": semop(set: c_int, operations: *mut libc::sembuf, count: usize) -> c_int;
    semtimedop_next = c"semtimedop": semtimedop(
        set: c_int, operations: *mut libc::sembuf, count: usize, limit: *const libc::timespec
    ) -> c_int;
    msgsnd_next = c"msgsnd": msgsnd(queue: c_int, message: *const c_void, size: usize, flags: c_int) -> c_int;
    msgrcv_next = c"msgrcv": msgrcv(
        queue: c_int, message: *mut c_void, size: usize, kind: c_long, flags: c_int
    ) -> isize;
    accept_next = c"accept": accept(file: c_int, from: *mut libc::sockaddr, size: *mut libc::socklen_t) -> c_int;
    connect_next = c"connect": connect(file: c_int, to: *const libc::sockaddr, size: libc::socklen_t) -> c_int;
    recv_next = c"recv": recv(file: c_int, to: *mut c_void, size: usize, flags: c_int) -> isize;
    recvmsg_next = c"recvmsg": recvmsg(file: c_int, message: *mut libc::msghdr, flags: c_int) -> isize;
    send_next = c"send": send(file: c_int, from: *const c_void, size: usize, flags: c_int) -> isize;
    sendmsg_next = c"sendmsg": sendmsg(file: c_int, message: *const libc::msghdr, flags: c_int) -> isize;
    recvfrom_next = c"recvfrom": recvfrom(
        file: c_int, to: *mut c_void, size: usize, flags: c_int, from: *mut libc::sockaddr,
        from_size: *mut libc::socklen_t
    ) -> isize;
}

/// Replaces functions that wait with a mask of the program's: the trigger's signal is added to it.
macro_rules! masked_waits {
    ($($place:ident = $text:literal: $name:ident(
        $($argument:ident: $kind:ty),*; mask $($behind:ident: $kind_behind:ty),*
    ) -> $result:ty;)*) => {
        $(
            next!($place = $text as fn($($kind,)* *const libc::sigset_t $(, $kind_behind)*) -> $result);

            /// # Safety
            /// What the function demands whose place it takes.
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name(
                $($argument: $kind,)* mask: *const libc::sigset_t $(, $behind: $kind_behind)*
            ) -> $result {
                let has_to_wait = has_to_wait();
                // Without a mask, the thread's own counts.
                let _blocked = (has_to_wait && mask.is_null()).then(Blocked::new);
                // SAFETY: the caller's own call; a mask that is not null is valid.
                unsafe {
                    if !has_to_wait || mask.is_null() {
                        return $place::get()($($argument,)* mask $(, $behind)*);
                    }
                    let mut with_ours = mask.read();
                    let word = (&raw mut with_ours).cast::<Mask>();
                    word.write(word.read() | OURS);
                    $place::get()($($argument,)* &with_ours $(, $behind)*)
                }
            }
        )*

        fn find_masked() {
            $($place::NEXT.find();)*
        }
    };
}

masked_waits! {
    ppoll_next = c"ppoll": ppoll(
        files: *mut libc::pollfd, count: libc::nfds_t, limit: *const libc::timespec; mask
    ) -> c_int;
    pselect_next = c"pselect": pselect(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set,
        limit: *const libc::timespec; mask
    ) -> c_int;
    epoll_pwait_next = c"epoll_pwait": epoll_pwait(
        file: c_int, events: *mut libc::epoll_event, most: c_int, limit_ms: c_int; mask
    ) -> c_int;
    epoll_pwait2_next = c"epoll_pwait2": epoll_pwait2(
        file: c_int, events: *mut libc::epoll_event, most: c_int, limit: *const libc::timespec; mask
    ) -> c_int;
    sigsuspend_next = c"sigsuspend": sigsuspend(; mask) -> c_int;
}

next!(sigwaitinfo_next = c"sigwaitinfo" as fn(*const libc::sigset_t, *mut libc::siginfo_t) -> c_int);
next!(
    sigtimedwait_next =
        c"sigtimedwait" as fn(*const libc::sigset_t, *mut libc::siginfo_t, *const libc::timespec) -> c_int
);

/// # Safety
/// What `sigwaitinfo` demands.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigwaitinfo(set: *const libc::sigset_t, information: *mut libc::siginfo_t) -> c_int {
    let _blocked = guard();
    // SAFETY: the caller's own call; the set is valid.
    unsafe { sigwaitinfo_next::get()(&without_ours(set), information) }
}

/// # Safety
/// What `sigtimedwait` demands.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigtimedwait(
    set: *const libc::sigset_t,
    information: *mut libc::siginfo_t,
    limit: *const libc::timespec,
) -> c_int {
    let _blocked = guard();
    // SAFETY: the caller's own call; the set is valid.
    unsafe { sigtimedwait_next::get()(&without_ours(set), information, limit) }
}

/// Looks up what is replaced here.
pub fn find() {
    find_plain();
    find_masked();
    sigwaitinfo_next::NEXT.find();
    sigtimedwait_next::NEXT.find();
}
