//! Both ends, message by message. That the rules suffice is the checker's to show.

use super::dcoh::{Line, Outcome};
use super::host_side::{self, Awaited, Holds, LastLevel, Outcome as Done, Output, Requester};
use super::messages::{CacheState, Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse};
use super::rules::Rules;

/// The version of each half of a line.
type Versions = [u8; 2];

impl Payload for Versions {
    fn overlaid(self, written: Versions, part: Part) -> Versions {
        match part {
            Part::Some => [written[0], self[1]],
            Part::Whole => written,
        }
    }
}

const OLD: Versions = [1, 1];
const NEW: Versions = [2, 2];
const SOUND: Rules = Rules::SOUND;

fn device_with(state: CacheState) -> Line<Versions> {
    Line { state, data: OLD, transaction: None }
}

fn is_granted(line: &mut Line<Versions>, state: CacheState) {
    assert_eq!(line.take_response(&SOUND, Response::Go(state), NEW), Outcome::Nothing);
}

#[test]
fn data_and_go_come_in_either_order() {
    for data_first in [true, false] {
        let mut line = device_with(CacheState::Invalid);
        line.request(Request::RdOwn);
        if data_first {
            assert_eq!(line.take_data(&SOUND, NEW), Outcome::Nothing);
        }
        is_granted(&mut line, CacheState::Exclusive);
        if !data_first {
            assert!(!line.answers_snoops(&SOUND), "between GO and data");
            assert_eq!(line.take_data(&SOUND, NEW), Outcome::Nothing);
        }
        assert_eq!(line, Line { data: NEW, ..device_with(CacheState::Exclusive) });
        assert!(line.answers_snoops(&SOUND));
    }
}

#[test]
fn an_eviction_that_was_snooped_meanwhile_brings_bogus_data() {
    let mut line = device_with(CacheState::Modified);
    line.request(Request::DirtyEvict);
    assert_eq!(line.take_snoop(&SOUND, Snoop::SnpInv, false), (SnoopResponse::RspIFwdM, Some(OLD)));
    let pulled = Pulled { data: OLD, is_bogus: true };
    assert_eq!(line.take_response(&SOUND, Response::GoWritePull, NEW), Outcome::Send(pulled));
    assert_eq!(line.transaction, None);
}

#[test]
fn a_message_without_a_transaction_is_unexpected() {
    let mut line = device_with(CacheState::Shared);
    assert_eq!(line.take_response(&SOUND, Response::ExtCmp, NEW), Outcome::Unexpected);
    assert_eq!(line.take_data(&SOUND, NEW), Outcome::Unexpected);
}

/// What the host sends while `act` runs, and what comes of it.
fn sent<T>(act: impl FnOnce(&mut dyn FnMut(Output<Versions>)) -> T) -> (Vec<Output<Versions>>, T) {
    let mut sent = Vec::new();
    let outcome = act(&mut |output| sent.push(output));
    (sent, outcome)
}

#[test]
fn go_waits_for_the_data_of_a_snoop() {
    let mut host: host_side::Line<Versions, 2, 0> = host_side::Line::new(OLD);
    host.devices[1].holds = Holds::Owner;
    let request = Requester::Device(0, Request::RdOwn);
    let snoops = sent(|mut send| host.serve(&SOUND, request, false, NEW, &mut send));
    assert_eq!(snoops, (vec![Output::Snoop(1, Snoop::SnpInv)], Done::Nothing));
    let answered = sent(|mut send| host.take_snoop_response(&SOUND, 1, SnoopResponse::RspIFwdM, NEW, &mut send));
    assert_eq!((answered, host.devices[1].awaited), ((vec![], Done::Nothing), Awaited::Data));
    let granted = sent(|mut send| host.take_snooped_data(&SOUND, 1, NEW, NEW, &mut send));
    let go = Output::Response(0, Response::Go(CacheState::Modified));
    assert_eq!(granted, (vec![go, Output::Data(0, NEW)], Done::Nothing));
    assert_eq!([host.devices[0].holds, host.devices[1].holds], [Holds::Owner, Holds::Nothing]);
    assert_eq!(host.last_level, LastLevel::Nothing, "the owner has what is newer than memory");
}

#[test]
fn a_partial_write_keeps_the_bytes_that_it_does_not_carry() {
    let mut host: host_side::Line<Versions, 1, 0> = host_side::Line::new(OLD);
    host.last_level = LastLevel::Dirty([3, 3]);
    let request = Requester::Device(0, Request::WrInv);
    let pull = sent(|mut send| host.serve(&SOUND, request, false, NEW, &mut send));
    assert_eq!(pull, (vec![Output::Response(0, Response::WritePull)], Done::Nothing));
    let pulled = Pulled { data: [4, 4], is_bogus: false };
    let done = sent(|mut send| host.take_pulled(&SOUND, 0, pulled, &mut send));
    let go = Output::Response(0, Response::Go(CacheState::Invalid));
    assert_eq!(done, (vec![go], Done::Wrote(Part::Some)));
    assert_eq!((host.memory, host.last_level), ([4, 3], LastLevel::Nothing));
}
