//! The owner of all devices of a segment, or the one that would be next.

use std::collections::BTreeMap;
use std::time::Duration;

use fencepost_pacing::{Grant, Members, Owner, Probing, Row as MemberRow};

use crate::segment::place::{Holder, Phase};
use crate::segment::{Candidate, Row, Segment};

/// A silent owner is followed after so many intervals.
const SILENT_INTERVALS_MAX: u32 = 5;

/// A row by its place, and who has it.
type RowId = (usize, u32);

/// One candidate.
pub struct Owners<'a> {
    segment: Segment<'a>,
    /// Which candidate.
    me: usize,
    owned: Option<Owned>,
    members: Members<RowId>,
    /// What the first device's owner granted last, and since how many intervals that is so.
    seen: (Option<(u64, u64)>, u32),
}

/// What the owner knows.
struct Owned {
    epoch: u64,
    number: u64,
    devices: Vec<Owner>,
}

impl<'a> Owners<'a> {
    /// The candidate `me` of a segment.
    pub fn new(segment: Segment<'a>, me: usize) -> Owners<'a> {
        let timing = segment.timing();
        let intervals = timing.silence_max.as_secs_f64() / timing.interval.as_secs_f64();
        Owners { segment, me, owned: None, members: Members::new(intervals.ceil() as u32), seen: (None, 0) }
    }

    /// Whether this candidate is the owner.
    pub fn is_owner(&self) -> bool {
        self.owned.is_some()
    }

    /// An interval is over, which took `elapsed`.
    pub fn interval(&mut self, elapsed: Duration) {
        let newest = Candidate::newest(self.segment.candidates(), 0);
        let order = newest.map(|newest| (newest.grant.epoch, newest.grant.number));
        self.seen = if order == self.seen.0 { (order, self.seen.1.saturating_add(1)) } else { (order, 0) };
        let epoch_seen = newest.map_or(0, |newest| newest.grant.epoch);
        // Another one is the owner by now: nothing of this one's counts any more.
        self.owned.take_if(|owned| owned.epoch < epoch_seen);
        // Also while another is the owner: whoever follows knows at once who is silent.
        let rows = self.live_rows();
        if self.owned.is_none() {
            if newest.is_some() && self.seen.1 < SILENT_INTERVALS_MAX {
                return;
            }
            self.owned = Some(self.begin(epoch_seen));
        }
        self.publish(&rows, elapsed);
    }

    fn begin(&self, epoch_seen: u64) -> Owned {
        let segment = self.segment;
        let found: Vec<Option<Grant>> = (0..segment.device_count()).map(|device| segment.grant(device)).collect();
        let number = found.iter().flatten().map(|grant| grant.number).max().unwrap_or(0);
        let epoch = Candidate::next_epoch(epoch_seen, self.me, segment.candidate_count());
        let owner = |(device, found): (usize, &Option<Grant>)| {
            let interval = segment.timing().interval;
            let probing = Probing { interval, ..Probing::new(segment.capacity(device)) };
            // A segment is made with capacities above zero.
            Owner::new(segment.law(), probing, epoch, *found).ok()
        };
        Owned { epoch, number, devices: found.iter().enumerate().filter_map(owner).collect() }
    }

    fn live_rows(&mut self) -> Vec<Row> {
        let read = |(index, words)| {
            let Holder { phase, generation, .. } = Row::place(words).holder();
            let row = (phase == Phase::Live).then(|| Row::read(words)).flatten()?;
            let is_written = row.devices != 0 && (row.rule as usize) < self.segment.rule_count();
            is_written.then_some(((index, generation), row))
        };
        let rows: BTreeMap<RowId, Row> = self.segment.rows().enumerate().filter_map(read).collect();
        let members: Vec<_> =
            rows.into_iter().map(|(id, row)| MemberRow { id, heartbeat: row.heartbeat, claim: row }).collect();
        self.members.live(&members)
    }

    fn publish(&mut self, rows: &[Row], elapsed: Duration) {
        let Some(owned) = &mut self.owned else { return };
        // One number for all devices, so that grants of a path can be compared.
        owned.number = owned.number.saturating_add(1);
        for (device, owner) in owned.devices.iter_mut().enumerate() {
            let on_path = rows.iter().filter(|row| row.devices >> device & 1 == 1);
            let claims: Vec<_> =
                on_path.map(|row| row.claim(device, self.segment.rule_weight(row.rule as usize))).collect();
            let grant = owner.interval(&claims, 0.0, elapsed);
            let grant = Grant { epoch: owned.epoch, number: owned.number, ..grant };
            self.segment.candidate(self.me).publish(device, &grant);
        }
    }
}
