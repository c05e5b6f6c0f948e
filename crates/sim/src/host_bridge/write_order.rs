//! Keeps requests behind the writes they must not overtake.
//!
//! CXL.mem orders nothing between M2S Req and M2S RwD, and nothing between two writes on different ways through the
//! fabric. So a request for a line whose write has no `Cmp` yet stays in the host bridge until it has.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Message;
use fencepost_kernel::time::Time;

/// The lines whose write has no `Cmp` yet, and what waits behind it.
#[derive(Clone, Debug, Default)]
pub struct WriteOrder {
    /// Never iterated but for the deadlock report, which sorts.
    unfinished: FxHashMap<LineAddress, VecDeque<Held>>,
    held: usize,
}

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Held {
    /// The request.
    pub message: Message,
    /// Since when.
    pub since: Time,
}

impl WriteOrder {
    /// Gives `message` back if it may go now. If not, it is kept, behind those that wait for the same line already.
    pub fn admit(&mut self, message: Message, now: Time) -> Option<Message> {
        if let Some(held) = self.unfinished.get_mut(&message.line) {
            held.push_back(Held { message, since: now });
            self.held += 1;
            return None;
        }
        if message.is_write() {
            self.unfinished.insert(message.line, VecDeque::new());
        }
        Some(message)
    }

    /// The write to `line` has its `Cmp`: gives what may go now, in order. That ends after the next write.
    ///
    /// # Panics
    /// If no write to `line` is unfinished.
    pub fn finished(&mut self, line: LineAddress) -> VecDeque<Held> {
        let mut held = self.unfinished.remove(&line).expect("only an unfinished write finishes");
        let writes_again = held.iter().position(|held| held.message.is_write());
        let rest = held.split_off(writes_again.map_or(held.len(), |write| write + 1));
        if writes_again.is_some() {
            self.unfinished.insert(line, rest);
        }
        self.held -= held.len();
        held
    }

    /// Whether a write to `line` has no `Cmp` yet that has to be waited for.
    pub fn holds(&self, line: LineAddress) -> bool {
        self.unfinished.contains_key(&line)
    }

    /// How many requests wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether every write has its `Cmp`.
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// What waits, for the deadlock report: lines in ascending order, each with the number of requests held behind its
    /// write.
    pub fn waiting(&self) -> Vec<(LineAddress, usize)> {
        let mut waiting: Vec<_> = self
            .unfinished
            .iter()
            .filter(|(_, held)| !held.is_empty())
            .map(|(line, held)| (*line, held.len()))
            .collect();
        waiting.sort_unstable();
        waiting
    }
}
