//! Power cuts between any two steps, in the middle of a recovery too.

use super::*;

/// A scripted life of a buffer: each closure does one thing, each step in between is a place for a power cut.
fn script(policy: DrainPolicy) -> (Parameters, Vec<(u64, u64, ByteMask)>) {
    let writes = vec![
        (1, 1, ByteMask::FULL),
        (2, 1, ByteMask::FULL),
        (1, 2, ByteMask::FULL),
        (3, 1, LOW_HALF),
        (1, 3, ByteMask::FULL),
        (3, 2, HIGH_HALF),
        (2, 2, ByteMask::FULL),
        (3, 3, LOW_HALF),
        (1, 4, LOW_HALF),
    ];
    (parameters(3, policy), writes)
}

/// The newest acknowledged version of each half of each line.
type Acknowledged = BTreeMap<u64, [u64; 2]>;

/// Runs the script for `steps` steps of the controller. The device lags, so that a line is written again while it is
/// drained: it takes a drain only every 23rd step. Gives the bench and what was
/// acknowledged; nothing if the script ends before.
fn run_script<R: Rules>(policy: DrainPolicy, steps: usize) -> Option<(Bench<R>, Acknowledged)> {
    let (parameters, writes) = script(policy);
    let mut bench: Bench<R> = Bench::with_rules(parameters);
    let mut waiting = writes.clone().into_iter().peekable();
    let mut requests = Vec::new();
    let mut acknowledged = Acknowledged::new();
    for step in 0..steps {
        if let Some(&(line, version, mask)) = waiting.peek() {
            let (action, request) = bench.offer_write(line, version, mask);
            if action == Action::Admitted {
                requests.push((request, waiting.next().unwrap()));
            }
        }
        if step % 23 == 22 && !bench.drains.is_empty() && bench.state.input.acknowledgements() == 0 {
            let acknowledgement = bench.device_writes();
            bench.acknowledge(acknowledgement);
        }
        let reaction = bench.step();
        if reaction.action == Action::Nothing && waiting.peek().is_none() && bench.drains.is_empty() {
            return None;
        }
        if let Some(Output::Completed(request)) = reaction.output {
            let (line, version, mask) = requests.iter().find(|(id, _)| *id == request).unwrap().1;
            let halves = acknowledged.entry(line).or_default();
            for (half, half_mask) in [LOW_HALF, HIGH_HALF].into_iter().enumerate() {
                if mask.0 & half_mask.0 != 0 {
                    halves[half] = version;
                }
            }
        }
    }
    Some((bench, acknowledged))
}

fn lost(memory: &Memory, acknowledged: &Acknowledged) -> Option<u64> {
    acknowledged
        .iter()
        .find(|(line, halves)| memory.halves(**line).iter().zip(*halves).any(|(held, promised)| held < promised))
        .map(|(line, _)| *line)
}

const POLICIES: [DrainPolicy; 5] = [
    DrainPolicy::AtOnce,
    DrainPolicy::Threshold { above: 2, down_to: 1 },
    DrainPolicy::Threshold { above: 3, down_to: 3 },
    DrainPolicy::Adaptive { hold: 0 },
    DrainPolicy::Adaptive { hold: 2 },
];

#[test]
fn whenever_power_is_cut_recovery_brings_every_acknowledged_version_to_the_device() {
    for policy in POLICIES {
        let mut cuts = 0;
        while let Some((mut bench, acknowledged)) = run_script::<Sound>(policy, cuts) {
            bench.check();
            bench.cut_power();
            bench.check();
            for (line, halves) in &acknowledged {
                let held = bench.state.durable_version(LineAddress(*line)).map_or(0, |version| version.0);
                let newest = held.max(bench.memory.halves(*line)[0]).max(bench.memory.halves(*line)[1]);
                assert!(newest >= halves[0].max(halves[1]), "line {line}, cut after {cuts} steps");
            }
            bench.recover();
            assert_eq!(lost(&bench.memory, &acknowledged), None, "cut after {cuts} steps under {policy:?}");
            assert_eq!((bench.state.phase, bench.state.occupied()), (Phase::Running, 0));
            cuts += 1;
        }
        assert!(cuts > 60, "{cuts} places for a cut are too few to mean anything");
    }
}

#[test]
fn a_recovery_can_be_cut_at_any_step_and_started_again() {
    for policy in POLICIES {
        let mut cuts = 0;
        let mut recovery_cuts = 0;
        while let Some((bench, acknowledged)) = run_script::<Sound>(policy, cuts) {
            for recovery_steps in 0.. {
                let mut bench = bench.clone();
                bench.cut_power();
                bench.apply(Input::PowerOn);
                for step in 0..recovery_steps {
                    if step % 4 == 3 && !bench.drains.is_empty() && bench.state.input.acknowledgements() == 0 {
                        let acknowledgement = bench.device_writes();
                        bench.acknowledge(acknowledgement);
                    }
                    bench.step();
                    bench.check();
                }
                let was_over = bench.state.phase == Phase::Running;
                bench.cut_power();
                bench.recover();
                assert_eq!(lost(&bench.memory, &acknowledged), None, "cuts after {cuts} and {recovery_steps} steps");
                recovery_cuts += 1;
                if was_over {
                    break;
                }
            }
            cuts += 1;
        }
        assert!(recovery_cuts > 500, "{recovery_cuts}");
    }
}

#[test]
fn a_write_cut_before_its_state_is_written_has_never_been() {
    for steps in 0..=4 {
        let mut bench = Bench::new(2, threshold(2, 2));
        bench.write(1, 1);
        bench.offer_write(1, 2, ByteMask::FULL);
        for _ in 0..steps {
            bench.step();
        }
        bench.cut_power();
        assert_eq!(bench.state.durable_version(LineAddress(1)), Some(Version(1)), "after {steps} steps");
        bench.recover();
        assert_eq!(bench.memory.halves(1), [1, 1]);
    }
}

#[test]
fn after_a_cut_between_two_contents_of_a_line_the_younger_alone_is_drained() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.offer_write(1, 2, ByteMask::FULL);
    for _ in 0..5 {
        bench.step();
    }
    bench.cut_power();
    assert_eq!(bench.lines_in(EntryState::Dirty), [1, 1]);
    bench.apply(Input::PowerOn);
    assert_eq!(bench.lines_in(EntryState::Dirty), [1]);
    bench.settle();
    let versions: Vec<u64> = bench.drains.iter().map(|(_, data)| data.version.0).collect();
    assert_eq!(versions, [2]);
}

#[test]
fn what_is_being_drained_comes_before_a_younger_content_of_its_line() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.write(1, 1);
    bench.write(1, 2);
    bench.cut_power();
    bench.apply(Input::PowerOn);
    bench.settle();
    let versions: Vec<u64> = bench.drains.iter().map(|(_, data)| data.version.0).collect();
    assert_eq!(versions, [1], "the younger one waits");
    let acknowledgement = bench.device_writes();
    bench.acknowledge(acknowledgement);
    bench.settle();
    assert_eq!(bench.drains[0].1.version, Version(2));
}

#[test]
fn recovery_drains_dirty_and_draining_entries_and_several_lines_at_a_time() {
    let mut bench = Bench::new(4, threshold(3, 2));
    (1..=4).for_each(|line| bench.write(line, 1));
    assert_eq!((bench.lines_in(EntryState::Drain), bench.lines_in(EntryState::Dirty)), (vec![1, 2], vec![3, 4]));
    bench.cut_power();
    bench.apply(Input::PowerOn);
    bench.settle();
    assert_eq!(bench.drains.len(), 4);
    bench.device_takes_all();
    assert_eq!([1, 2, 3, 4].map(|line| bench.memory.halves(line)[0]), [1; 4]);
}

#[test]
fn traffic_waits_until_the_recovery_is_done() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.cut_power();
    assert_eq!(bench.offer_write(2, 1, ByteMask::FULL).0, Action::Refused, "there is no power");
    bench.apply(Input::PowerOn);
    assert_eq!(bench.offer_write(2, 1, ByteMask::FULL).0, Action::Refused);
    assert_eq!(bench.offer_read(2).0, Action::Refused, "a read of any line");
    bench.device_takes_all();
    assert_eq!(bench.offer_write(2, 1, ByteMask::FULL).0, Action::Admitted);
}

#[test]
fn a_buffer_that_holds_nothing_recovers_at_once() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.offer_write(1, 1, ByteMask::FULL);
    bench.step();
    bench.step();
    bench.cut_power();
    bench.apply(Input::PowerOn);
    assert_eq!(bench.state, State::new(&bench.parameters));
}

/// The scripted cuts under other rules; whether one of them loses something.
pub(super) fn some_cut_loses<R: Rules>() -> bool {
    POLICIES.iter().any(|policy| {
        (0..).map_while(|cuts| run_script::<R>(*policy, cuts)).any(|(mut bench, acknowledged)| {
            bench.cut_power();
            bench.apply(Input::PowerOn);
            bench.settle();
            // The device may write what is under way to different lines in any order: here, the youngest first.
            while let Some((drain, data)) = bench.drains.pop_back() {
                if data.is_torn {
                    return true;
                }
                bench.memory.write(drain.line, &data);
                bench.acknowledge(drain);
                bench.settle();
            }
            lost(&bench.memory, &acknowledged).is_some()
        })
    })
}

#[test]
fn the_scripted_cuts_lose_nothing_whatever_order_the_device_writes_in() {
    assert!(!some_cut_loses::<Sound>());
}
