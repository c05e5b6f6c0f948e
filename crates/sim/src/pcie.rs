//! A PCIe device, to compare coherent ones with: what cores do to its registers (MMIO), and what its DMA engine moves.
//!
//! Nothing is cached and nothing is snooped back, so no order of events can change the outcome: each stage is a
//! reservation of the time from which on it is free. Descriptors, data and the word that says that a transfer is over
//! lie in the host's last level, where writes of devices go and the core has just put what it hands over.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::Machine;
use crate::device::PcieConfig;
use fencepost_kernel::time::{Duration, Time};

/// Bytes of a doorbell, and of the word by which the engine says that a transfer is over.
const WORD_BYTES: u32 = 8;

/// What is to be done, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// By which means.
    pub by: By,
    /// Bytes of each.
    pub bytes: u32,
    /// How many; with one it is latency that is measured.
    pub count: u32,
}

/// Means of transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A core reads registers, one after the other.
    MmioRead,
    /// A core writes registers through a write-combining buffer, and reads one behind them.
    MmioWrite,
    /// A core writes a descriptor and a doorbell, the engine fetches both descriptor and data, and the core sees that
    /// it has.
    Dma,
    /// The device's logic itself gives the engine descriptors, which it fetches: done when the data are at the logic.
    DeviceDma,
}

/// What is busy until when, and what stages take.
struct Path<'a> {
    config: &'a PcieConfig,
    down: Time,
    up: Time,
    data_path: Time,
    registers: Time,
    last_level: Duration,
    /// A load of a core that hits there.
    core: Duration,
    /// From there to the core.
    back: Duration,
}

impl Path<'_> {
    fn wire(&self, bytes: u32, gb_per_s: f64) -> Duration {
        Duration::from_ns(f64::from(bytes + self.config.header_bytes) / gb_per_s)
    }

    /// A packet leaves the host's last level at `at`: when it is at the device's logic.
    fn go_down(&mut self, at: Time, bytes: u32) -> Time {
        let at_port = at + Duration::from_ns(self.config.root_ns);
        self.down = self.down.max(at_port) + self.wire(bytes, self.config.bandwidth_gb_per_s);
        let at_device = self.down + Duration::from_ns(self.config.latency_ns);
        self.data_path = self.data_path.max(at_device) + self.wire(bytes, self.config.data_path_gb_per_s);
        self.data_path + Duration::from_ns(self.config.endpoint_ns)
    }

    /// A packet is at the device's logic at `at`: when a register has been read or written for it. They are one after
    /// the other.
    fn reach_register(&mut self, at: Time) -> Time {
        self.registers = self.registers.max(at) + Duration::from_ns(self.config.register_ns);
        self.registers
    }

    /// A core reads a register from `at` on: when it has what it holds.
    fn read_register(&mut self, at: Time, bytes: u32) -> Time {
        let at_logic = self.go_down(at + self.last_level, 0);
        let read = self.reach_register(at_logic);
        self.go_up(read, bytes) + self.back
    }

    /// A packet leaves the device's logic at `at`: when it is at the host's last level.
    fn go_up(&mut self, at: Time, bytes: u32) -> Time {
        let at_port = at + Duration::from_ns(self.config.endpoint_ns);
        self.up = self.up.max(at_port) + self.wire(bytes, self.config.bandwidth_gb_per_s);
        self.up + Duration::from_ns(self.config.latency_ns + self.config.root_ns)
    }

    /// The word that says that a transfer is over, small enough to slip between what reserves the way: reserving it
    /// would hold back requests that leave before it.
    fn say_over(&self, at: Time) -> Time {
        let wire = self.wire(WORD_BYTES, self.config.bandwidth_gb_per_s);
        at + Duration::from_ns(self.config.endpoint_ns + self.config.latency_ns + self.config.root_ns) + wire
    }

    /// A read of up to `read_bytes_max` that leaves the logic at `at`: when its last byte is there.
    fn read_host(&mut self, at: Time, bytes: u32) -> Time {
        let found = self.go_up(at, 0) + self.last_level;
        let payload = self.config.payload_bytes_max;
        parts(bytes, payload).map(|part| self.go_down(found, part)).last().unwrap_or(found)
    }
}

/// `bytes` in parts of at most `most`.
fn parts(bytes: u32, most: u32) -> impl Iterator<Item = u32> {
    (0..bytes.div_ceil(most)).map(move |number| most.min(bytes - number * most))
}

impl Transfers {
    /// Does them on the PCIe device of `machine`; gives `{transfers, latency_ns, bandwidth_gb_per_s}`.
    ///
    /// # Errors
    /// If the machine has none, or there is nothing to transfer.
    pub fn run(&self, machine: &Machine) -> Result<Value, String> {
        let config = machine.pcie.as_ref().ok_or("the machine has no PCIe device: see [pcie]")?;
        if self.bytes == 0 || self.count == 0 {
            return Err("there has to be a byte to transfer".to_owned());
        }
        let levels = machine.cache_levels();
        let cycle = Duration::from_ghz(machine.core.clock_ghz);
        let last = levels.lower.last().map_or(0, |(_, last)| last.latency_cycles);
        let (last_level, core) = (cycle * u64::from(last), levels.miss_latency(machine.core.clock_ghz));
        let (down, up, data_path, registers) = (Time::ZERO, Time::ZERO, Time::ZERO, Time::ZERO);
        let back = Duration::from_ps(core.as_ps() - last_level.as_ps());
        let mut path = Path { config, down, up, data_path, registers, last_level, core, back };
        let end = match self.by {
            By::MmioRead => self.mmio_read(&mut path),
            By::MmioWrite => self.mmio_write(&mut path),
            By::Dma => self.dma(&mut path, true),
            By::DeviceDma => self.dma(&mut path, false),
        };
        let ns = end.as_ns();
        let bytes = f64::from(self.bytes) * f64::from(self.count);
        Ok(json!({
            "transfers": self,
            "latency_ns": ns / f64::from(self.count),
            "bandwidth_gb_per_s": bytes / ns,
        }))
    }

    fn mmio_read(&self, path: &mut Path<'_>) -> Time {
        let mut at = Time::ZERO;
        for _ in 0..self.count {
            // Loads of registers are not reordered: each waits for the one before it.
            for bytes in parts(self.bytes, path.config.register_bytes) {
                at = path.read_register(at, bytes);
            }
        }
        at
    }

    /// Stores do not wait for each other; a load behind the last one says that they have arrived.
    fn mmio_write(&self, path: &mut Path<'_>) -> Time {
        let mut end = Time::ZERO;
        for _ in 0..self.count {
            let begun = end;
            for bytes in parts(self.bytes, path.config.register_bytes) {
                let at_logic = path.go_down(begun + path.last_level, bytes);
                path.reach_register(at_logic);
            }
            end = path.read_register(begun, WORD_BYTES);
        }
        end
    }

    /// The engine reads ahead: descriptors one after the other, data as far as it may have reads under way.
    fn dma(&self, path: &mut Path<'_>, is_of_core: bool) -> Time {
        let config = path.config;
        let rung = if is_of_core {
            let at_logic = path.go_down(Time::ZERO + path.last_level, WORD_BYTES);
            path.reach_register(at_logic)
        } else {
            Time::ZERO
        };
        let mut under_way = VecDeque::new();
        let mut engine = rung;
        let mut end = rung;
        let mut fetched = VecDeque::new();
        let mut to_fetch = self.count;
        for _ in 0..self.count {
            while to_fetch > 0 && fetched.len() < config.descriptors_ahead as usize {
                let begun = may_read(engine, &mut under_way, config);
                fetched.push_back(path.read_host(begun, config.descriptor_bytes));
                under_way.extend(fetched.back());
                to_fetch -= 1;
            }
            let first = fetched.pop_front().expect("a descriptor was fetched");
            engine = engine.max(first) + Duration::from_ns(config.descriptor_ns);
            let mut moved = engine;
            for bytes in parts(self.bytes, config.read_bytes_max) {
                moved = path.read_host(may_read(engine, &mut under_way, config), bytes);
                under_way.push_back(moved);
            }
            // The core polls the word, which it then finds in the last level.
            end = if is_of_core { path.say_over(moved) + path.core } else { moved };
        }
        end
    }
}

/// When a read that could begin at `at` may do so: not more than so many are under way.
fn may_read(at: Time, under_way: &mut VecDeque<Time>, config: &PcieConfig) -> Time {
    if under_way.len() < config.reads_max as usize {
        return at;
    }
    under_way.pop_front().map_or(at, |first| first.max(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_comes_in_parts() {
        assert_eq!(parts(256, 64).collect::<Vec<_>>(), [64; 4]);
        assert_eq!(parts(100, 64).collect::<Vec<_>>(), [64, 36]);
    }
}
