//! Operations as they arrive: when, and which of them wait.

use std::collections::VecDeque;

use crate::service::scheduler::Nanoseconds;

/// An operation that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    pub number: u64,
    pub at: Nanoseconds,
    /// How long the server had waited for its core until then.
    pub core_waits: Nanoseconds,
}

/// An open loop, whose gaps are exponential, or a closed one.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// None: a closed loop.
    per_second: Option<f64>,
    count_max: u64,
    arrived: u64,
    queue: VecDeque<Arrived>,
    state: u64,
}

impl Arrivals {
    /// Of so many operations.
    pub fn new(per_second: Option<f64>, count_max: u64, seed: u64) -> Self {
        let state = seed.wrapping_mul(2).wrapping_add(1);
        Self { per_second, count_max, arrived: 0, queue: VecDeque::new(), state }
    }

    /// Whether the next operation arrives when one is done.
    pub fn is_closed(&self) -> bool {
        self.per_second.is_none()
    }

    /// One arrives; after how long the next one does, if that does not depend on what is done.
    pub fn arrive(&mut self, at: Nanoseconds, core_waits: Nanoseconds) -> Option<Nanoseconds> {
        self.queue.push_back(Arrived { number: self.arrived, at, core_waits });
        self.arrived += 1;
        let rate = self.per_second.filter(|_| self.arrived < self.count_max)?;
        Some((-self.draw().ln() / rate * 1e9) as Nanoseconds)
    }

    /// The one that has waited the longest.
    pub fn take(&mut self) -> Option<Arrived> {
        self.queue.pop_front()
    }

    /// Uniform in (0, 1]: xorshift64*.
    fn draw(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits + 1) as f64 / (1u64 << 53) as f64
    }
}
