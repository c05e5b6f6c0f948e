//! Random lives against the simplest description of what a persist buffer promises: what was acknowledged is durable, a
//! read sees it, and every request is answered.

use proptest::prelude::*;

use super::*;

/// What the world around the buffer does next.
#[derive(Clone, Debug)]
enum Deed {
    /// A host writes a line, if it has no request for it under way.
    Write { line: u64, mask: ByteMask },
    /// A host reads a line, likewise.
    Read { line: u64 },
    /// The controller steps.
    Step(u8),
    /// The forecast holds so many entries back from now on, if the policy listens to one.
    Hold(u16),
    /// The device writes one of the drains under way and acknowledges it.
    Device { choice: usize, twice: bool },
    /// Power goes, and comes again.
    Cut,
    /// Power goes while a recovery runs, and comes again.
    CutTwice { steps: u8 },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let mask = prop_oneof![4 => Just(ByteMask::FULL), 1 => Just(LOW_HALF), 1 => Just(HIGH_HALF)];
    let deed = prop_oneof![
        6 => (0..4u64, mask).prop_map(|(line, mask)| Deed::Write { line, mask }),
        3 => (0..4u64).prop_map(|line| Deed::Read { line }),
        12 => (1..8u8).prop_map(Deed::Step),
        5 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(choice, twice)| Deed::Device { choice, twice }),
        1 => (0..5u16).prop_map(Deed::Hold),
        1 => Just(Deed::Cut),
        1 => (0..20u8).prop_map(|steps| Deed::CutTwice { steps }),
    ];
    prop::collection::vec(deed, 1..200)
}

fn any_parameters() -> impl Strategy<Value = Parameters> {
    let policy = (0..3u8, 0..=5u16, 0..=5u16);
    (1..=5u16, 1..=4u16, 1..=2u16, any::<bool>(), policy).prop_map(
        |(entries, input_places, acknowledgement_places, reads_bypass, (kind, above, down_to))| {
            let policy = match kind {
                0 => DrainPolicy::AtOnce,
                1 => adaptive(down_to),
                _ => threshold(above.min(entries), down_to.min(above).min(entries)),
            };
            Parameters { entries, input_places, acknowledgement_places, reads_bypass, policy }
        },
    )
}

/// A request of a host that has no answer.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Write { line: u64, version: u64, mask: ByteMask },
    Read { line: u64, at_least: u64 },
}

struct World {
    bench: Bench,
    /// Requests without an answer; at most one of each line, as a host bridge sees to it.
    pending: BTreeMap<RequestId, Pending>,
    /// Reads that went on to the device.
    at_device: Vec<RequestId>,
    /// Acknowledgements that found no place.
    refused: VecDeque<Acknowledgement>,
    /// Versions issued of each line.
    issued: [u64; 4],
    /// The newest acknowledged version of each half of each line.
    acknowledged: [[u64; 2]; 4],
    /// How much of `bench.sent` has been looked at.
    seen: usize,
}

impl World {
    fn is_free(&self, line: u64) -> bool {
        !self.pending.values().any(|pending| match pending {
            Pending::Write { line: other, .. } | Pending::Read { line: other, .. } => *other == line,
        })
    }

    fn newest_acknowledged(&self, line: u64) -> u64 {
        self.acknowledged[line as usize].into_iter().max().unwrap()
    }

    fn act(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write { line, mask } if self.is_free(line) => {
                let version = self.issued[line as usize] + 1;
                let (action, request) = self.bench.offer_write(line, version, mask);
                if action == Action::Admitted {
                    self.issued[line as usize] = version;
                    self.pending.insert(request, Pending::Write { line, version, mask });
                }
            }
            Deed::Read { line } if self.is_free(line) => {
                let (action, request) = self.bench.offer_read(line);
                if action != Action::Refused {
                    self.pending.insert(request, Pending::Read { line, at_least: self.newest_acknowledged(line) });
                }
                if action == Action::Passed {
                    self.at_device.push(request);
                }
            }
            Deed::Write { .. } | Deed::Read { .. } => {}
            Deed::Step(count) => (0..count).for_each(|_| self.step()),
            Deed::Hold(entries) => {
                if let DrainPolicy::Adaptive { hold } = &mut self.bench.parameters.policy {
                    *hold = entries;
                }
            }
            Deed::Device { choice, twice } => self.device(choice, twice),
            Deed::Cut => {
                self.cut();
                self.recover();
            }
            Deed::CutTwice { steps } => {
                self.cut();
                self.bench.apply(Input::PowerOn);
                for _ in 0..steps {
                    self.step();
                    self.device(usize::from(steps), false);
                }
                self.cut();
                self.recover();
            }
        }
        self.bench.check();
    }

    fn step(&mut self) {
        self.bench.step();
        while let Some(output) = self.bench.sent.get(self.seen).copied() {
            self.seen += 1;
            match output {
                Output::Completed(request) => {
                    let Some(Pending::Write { line, version, mask }) = self.pending.remove(&request) else {
                        panic!("an acknowledgement of what nobody wrote")
                    };
                    for (half, half_mask) in [LOW_HALF, HIGH_HALF].into_iter().enumerate() {
                        if mask.0 & half_mask.0 != 0 {
                            self.acknowledged[line as usize][half] = version;
                        }
                    }
                }
                Output::Answered(request, data) => {
                    assert!(invariants::is_whole(&output));
                    self.answer(request, data.version.0);
                }
                Output::Forwarded(request) => self.at_device.push(request),
                Output::Drain(..) => unreachable!("drains are kept apart"),
            }
        }
    }

    fn answer(&mut self, request: RequestId, version: u64) {
        let Some(Pending::Read { line, at_least }) = self.pending.remove(&request) else {
            panic!("an answer to what nobody read")
        };
        assert!(version >= at_least, "a read of line {line} got version {version}, {at_least} was acknowledged before");
        assert!(version <= self.issued[line as usize], "version {version} of line {line} was never issued");
    }

    fn device(&mut self, choice: usize, twice: bool) {
        for request in std::mem::take(&mut self.at_device) {
            let Some(Pending::Read { line, .. }) = self.pending.get(&request) else { panic!("nobody reads") };
            let newest = self.bench.memory.halves(*line).into_iter().max().unwrap();
            self.answer(request, newest);
        }
        if !self.bench.drains.is_empty() {
            // Drains of different lines pass each other; there is only one of a line.
            let position = choice % self.bench.drains.len();
            let (acknowledgement, data) = self.bench.drains.remove(position).unwrap();
            self.bench.memory.write(acknowledgement.line, &data);
            self.refused.push_back(acknowledgement);
            if twice {
                self.refused.push_back(acknowledgement);
            }
        }
        while let Some(acknowledgement) = self.refused.front().copied() {
            if self.bench.acknowledge(acknowledgement) != Action::Admitted {
                break;
            }
            self.refused.pop_front();
        }
    }

    fn cut(&mut self) {
        self.bench.cut_power();
        self.pending.clear();
        self.at_device.clear();
        self.refused.clear();
        self.bench.check();
    }

    fn recover(&mut self) {
        self.bench.apply(Input::PowerOn);
        self.finish();
        for line in 0..4u64 {
            let held = self.bench.memory.halves(line);
            for (half, held) in held.into_iter().enumerate() {
                let promised = self.acknowledged[line as usize][half];
                assert!(held >= promised, "line {line} holds {held}, {promised} was acknowledged");
                assert!(held <= self.issued[line as usize], "version {held} of line {line} was never issued");
            }
        }
        assert_eq!(self.bench.state.occupied(), 0);
    }

    /// Lets everything that is under way come to its end.
    fn finish(&mut self) {
        for _ in 0..2000 {
            self.step();
            self.device(0, false);
            self.bench.check();
        }
        assert!(self.pending.is_empty(), "never answered: {:?}, {:#?}", self.pending, self.bench.state);
        assert!(self.bench.drains.is_empty() && self.bench.state.phase == Phase::Running);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_versions_are_durable_reads_see_them_and_everything_is_answered(
        parameters in any_parameters(), deeds in deeds(),
    ) {
        let mut world = World {
            bench: Bench::with_rules(parameters),
            pending: BTreeMap::new(),
            at_device: Vec::new(),
            refused: VecDeque::new(),
            issued: [0; 4],
            acknowledged: [[0; 2]; 4],
            seen: 0,
        };
        deeds.iter().for_each(|deed| world.act(deed));
        world.finish();
        world.cut();
        world.recover();
    }
}
