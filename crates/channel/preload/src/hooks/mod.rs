//! The functions of the C library that are replaced, by what they are for.

pub mod processes;
pub mod signals;
pub mod threads;
pub mod waits;

use std::sync::Once;

use crate::{channel, handler, process};

/// Looks up what the hooks replace, installs the handler and what runs when threads end and processes fork.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        processes::find();
        signals::find();
        threads::find();
        waits::find();
        handler::install(true);
        threads::watch_ends();
        processes::watch_forks();
    });
}

/// Runs before `main` where the library is preloaded, or linked: a program whose environment names no segment runs as
/// without it.
extern "C" fn begin() {
    let Some(Ok(segment)) = process::attach_named() else { return };
    install();
    // The program's mask is that of whoever started it.
    signals::begin_thread(false);
    channel::reap_own(segment);
    let _ = channel::open(None);
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs when the program ends by itself: what its main thread used last is counted too.
extern "C" fn end() {
    channel::close();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
