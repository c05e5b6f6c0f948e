//! Several channels of DRAM behind one controller: each is a [`Dram`] of its own, and nothing is shared but the way
//! there.

use super::{Dram, DramConfig};
use crate::device::medium::Completion;
use crate::host_bridge::Interleave;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Message, MessageClass};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;

/// Bytes that lie in one channel before the next one follows.
const BLOCK_BYTES: u64 = 256;

/// Channels alike, block by block in turn.
#[derive(Clone, Debug)]
pub struct DramChannels {
    interleave: Interleave,
    channel_interleave: Interleave,
    channels: Vec<Dram>,
    /// When each channel wants to be asked again.
    due: Vec<Time>,
}

impl DramChannels {
    /// Channels like `config`, whose lines are together those of one way of `interleave`.
    pub fn new(config: &DramConfig, interleave: Interleave, is_backed: bool) -> DramChannels {
        let channel_interleave =
            Interleave::new(0, BLOCK_BYTES, config.channels.into()).expect("a machine is checked for this");
        let channel = || Dram::one_of_several(config, interleave, channel_interleave, is_backed);
        let channels: Vec<Dram> = (0..config.channels).map(|_| channel()).collect();
        DramChannels { interleave, channel_interleave, due: vec![Time::NEVER; channels.len()], channels }
    }

    /// How many there are.
    pub fn channels(&self) -> u32 {
        self.channels.len() as u32
    }

    /// The channel that `line` lies in.
    pub fn channel(&self, line: LineAddress) -> usize {
        self.channel_interleave.way(LineAddress(self.interleave.device_line(line)))
    }

    /// See [`Dram::entry_time`]; all channels have one clock.
    pub fn entry_time(&self, time: Time) -> Time {
        self.channels[0].entry_time(time)
    }

    /// How many requests of `class` can be queued, in all channels together.
    pub fn queue_entries(&self, class: MessageClass) -> usize {
        self.channels.iter().map(|channel| channel.queue_entries(class)).sum()
    }

    /// Whether there is room for `request` in its channel.
    pub fn has_room(&self, request: &Message) -> bool {
        self.channels[self.channel(request.line)].has_room(request)
    }

    /// Takes `request`, for which there is room.
    pub fn accept(&mut self, request: Message, now: Time, completions: &mut Vec<Completion>) {
        let channel = self.channel(request.line);
        self.due[channel] = now;
        self.channels[channel].accept(request, now, completions);
    }

    /// Issues the commands that are due at `now` in any channel; gives the time of the next one.
    pub fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) -> Time {
        for (channel, due) in self.channels.iter_mut().zip(&mut self.due).filter(|(_, due)| **due <= now) {
            *due = channel.advance(now, completions);
        }
        self.due.iter().copied().min().unwrap_or(Time::NEVER)
    }

    /// Writes `version` of `line` before time starts.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        let channel = self.channel(line);
        self.channels[channel].preload(line, version);
    }

    /// See [`Dram::take_older_writes`].
    pub fn take_older_writes(&mut self) {
        self.channels.iter_mut().for_each(Dram::take_older_writes);
    }

    /// See [`Dram::durable_version`].
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.channels[self.channel(line)].durable_version(line)
    }

    /// Power is gone: everything is lost, but for what a battery keeps.
    pub fn power_fail(&mut self) {
        self.channels.iter_mut().for_each(Dram::power_fail);
        self.due.fill(Time::NEVER);
    }

    /// The bank of `line`, counted over all channels.
    pub fn bank_of(&self, line: LineAddress) -> u32 {
        let channel = self.channel(line);
        channel as u32 * self.channels[0].banks() + self.channels[channel].bank_of(line)
    }

    /// What can be watched: places in use in the queues of all channels.
    pub fn gauges(&self) -> [u64; 2] {
        let sum = |index: usize| self.channels.iter().map(|channel| channel.gauges()[index]).sum();
        [sum(0), sum(1)]
    }

    /// Whether nothing is queued.
    pub fn is_idle(&self) -> bool {
        self.channels.iter().all(Dram::is_idle)
    }

    /// What is queued, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        self.channels.iter().flat_map(Dram::waiting).collect()
    }

    /// What all channels counted up to `now` together; the highest level is that of one of them.
    pub fn stats(&self, now: Time) -> StatsNode {
        let trees = self.channels.iter().map(|channel| channel.stats(now));
        trees.reduce(|sum, channel| sum.plus(&channel)).expect("a device has a channel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::dram::tests::ddr4_2400;
    use fencepost_kernel::message::{Cause, Tag};

    fn read(line: u64) -> Message {
        Message::read(LineAddress(line), Tag(line as u32), Cause::DemandRead, Time::ZERO)
    }

    /// When all of `lines`, offered at the start, are answered; each is answered once.
    fn answered(channels: u16, lines: impl Iterator<Item = u64>) -> Time {
        let config = DramConfig { channels, read_queue_entries: 64, ..ddr4_2400() };
        let mut dram = DramChannels::new(&config, Interleave::WHOLE, false);
        let (mut completions, mut asked) = (Vec::new(), 0);
        for line in lines {
            assert!(dram.has_room(&read(line)));
            dram.accept(read(line), Time::ZERO, &mut completions);
            asked += 1;
        }
        let mut now = Time::ZERO;
        while now < Time::NEVER && !dram.is_idle() {
            now = dram.advance(now, &mut completions);
        }
        assert!(dram.is_idle());
        assert_eq!(dram.stats(now.min(Time::from_ps(1 << 40))).counter("reads"), asked);
        assert_eq!(completions.len() as u64, asked);
        completions.iter().map(|completion| completion.at).max().expect("something was read")
    }

    #[test]
    fn blocks_of_256_bytes_go_to_the_channels_in_turn_and_every_line_has_its_place() {
        let dram = DramChannels::new(&DramConfig { channels: 4, ..ddr4_2400() }, Interleave::WHOLE, false);
        let channels: Vec<usize> = (0..20).map(|line| dram.channel(LineAddress(line))).collect();
        assert_eq!(channels, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0, 0]);
        let places: Vec<u64> = (16..20).map(|line| dram.channels[0].channel_line(LineAddress(line))).collect();
        assert_eq!(places, [4, 5, 6, 7]);
    }

    #[test]
    fn two_channels_transfer_side_by_side() {
        let (one, two) = (answered(1, 0..64), answered(2, 0..64));
        let burst_ps = 64 * 3_332 / 2;
        assert!(one.as_ps() - two.as_ps() >= burst_ps, "{one} is not longer than {two} by half of the bursts");
        assert_eq!(answered(2, 0..4), answered(1, 0..4), "one block lies in one channel");
    }

    #[test]
    fn a_full_channel_has_no_room_while_another_has() {
        let config = DramConfig { channels: 2, read_queue_entries: 4, ..ddr4_2400() };
        let mut dram = DramChannels::new(&config, Interleave::WHOLE, false);
        (0..4).for_each(|line| dram.accept(read(line), Time::ZERO, &mut Vec::new()));
        assert!(!dram.has_room(&read(8)));
        assert!(dram.has_room(&read(4)));
        assert_eq!(dram.queue_entries(MessageClass::M2sReq), 8);
    }
}
