//! What a transport at the host does to threads: counts the lines of the pool that each of them moves, and pauses them.
//!
//! A thread that is paused is interrupted as by a signal whose handler sleeps: what it has under way is completed, then
//! it leaves its core, which another thread may have meanwhile. It may hold locks. Lines are counted when they are
//! asked for, prefetched ones included; a line that a thread writes is counted where it goes around the caches, and not
//! where it is evicted later, since its thread is not known then.

use fencepost_pacing::DevLoadCounts;

use super::Host;
use super::scheduler::ThreadState;
use crate::host_bridge::DeviceMap;
use fencepost_kernel::Context;
use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::message::Message;

/// The paced part of a host.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    map: DeviceMap,
    /// Bytes read and written, by thread and device.
    moved: Vec<Vec<[u64; 2]>>,
    /// Answers since the last look by the load that they reported, by device.
    loads: Vec<DevLoadCounts>,
    is_paused: Vec<bool>,
    /// How often a thread was paused.
    pub pauses: u64,
}

impl Pacing {
    /// Whether `thread` is to stand still.
    pub fn pauses(&self, thread: usize) -> bool {
        self.is_paused[thread]
    }

    /// An answer of a device has come.
    pub fn answered(&mut self, message: &Message) {
        if let Some(device) = self.map.device(message.line) {
            self.loads[device].count(message.dev_load);
        }
    }
}

impl Host {
    /// From now on a transport may pause threads, and what they move is counted.
    pub fn begin_pacing(&mut self, map: &DeviceMap) {
        let threads = self.process.threads.len();
        (0..self.socket.caches.sockets()).for_each(|socket| self.socket.caches.of_socket(socket).count_moved());
        self.pacing = Some(Box::new(Pacing {
            map: map.clone(),
            moved: vec![vec![[0; 2]; map.devices]; threads],
            loads: vec![DevLoadCounts::default(); map.devices],
            is_paused: vec![false; threads],
            pauses: 0,
        }));
    }

    /// How many threads the program has.
    pub fn threads(&self) -> usize {
        self.process.threads.len()
    }

    /// Bytes read and written by a thread, by device.
    pub fn moved(&mut self, thread: usize) -> &[[u64; 2]] {
        self.count_moved();
        self.pacing.as_ref().map_or(&[], |pacing| &pacing.moved[thread])
    }

    /// Answers of each device since the last look, by the load that they reported.
    pub fn take_loads(&mut self) -> Vec<DevLoadCounts> {
        let Some(pacing) = &mut self.pacing else { return Vec::new() };
        let empty = vec![DevLoadCounts::default(); pacing.loads.len()];
        std::mem::replace(&mut pacing.loads, empty)
    }

    /// How often threads were paused.
    pub fn pauses(&self) -> u64 {
        self.pacing.as_ref().map_or(0, |pacing| pacing.pauses)
    }

    /// Attributes what has left the caches to the threads of its cores.
    fn count_moved(&mut self) {
        let Some(pacing) = &mut self.pacing else { return };
        for socket in 0..self.socket.caches.sockets() {
            for (core, line, is_write) in self.socket.caches.of_socket(socket).take_moved() {
                let state = &self.socket.states[core];
                if let Some(thread) = state.thread.or(state.last_thread)
                    && let Some(device) = pacing.map.device(line)
                {
                    pacing.moved[thread][device][usize::from(is_write)] += LINE_BYTES;
                }
            }
        }
    }

    /// The thread stops as soon as what it has under way is complete.
    pub fn pause(&mut self, thread: usize, context: &mut Context<'_>) {
        let Some(pacing) = &mut self.pacing else { return };
        if std::mem::replace(&mut pacing.is_paused[thread], true) {
            return;
        }
        pacing.pauses += 1;
        let Some(core) = self.socket.states.iter().position(|state| state.thread == Some(thread)) else { return };
        // What it moved so far is its own, not that of the thread that gets the core.
        self.count_moved();
        self.socket.states[core].is_preempting = true;
        let now = self.cycle(context.now());
        self.run_core(core, now, context);
        self.send_departures(context);
    }

    /// The thread may go on.
    pub fn resume(&mut self, thread: usize, context: &mut Context<'_>) {
        let Some(pacing) = &mut self.pacing else { return };
        if std::mem::take(&mut pacing.is_paused[thread]) && self.process.states[thread] == ThreadState::Paused {
            let now = self.cycle(context.now());
            self.make_ready(thread, now, context);
            self.send_departures(context);
        }
    }
}
