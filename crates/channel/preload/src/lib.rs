//! `libfencepost_channel.so`: paces the threads of the program that it is preloaded into.
//!
//! The launcher names a segment in the environment. Each thread gets a channel when it starts, by the first rule that
//! its program and its name match, and a trigger that calls the handler each time that the thread has run for a
//! quantum. The handler ends the window, publishes the thread's row, and sleeps where the thread used more than its
//! share. It keeps `errno`, resolves no symbol and never calls the program's allocator; each pause is
//! limited, as the thread may hold a lock.
//!
//! A program that is linked with the library and started by itself calls `mchannel_init`, which starts the launcher's
//! code as a server where no segment is named.
//!
//! Nothing is exported but what the interface and the hooks define.

mod allocator;
mod binding;
mod channel;
mod handler;
mod hooks;
mod interface;
mod next;
mod orphan;
mod process;
mod rules;
mod server;
mod signal_mask;
