//! Both ends, message by message. That the rules suffice is the checker's to show.

use super::device::{Answer, Line};
use super::host::{self, Outcome, Output};
use super::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::CacheState;
use fencepost_kernel::line::Version;

const SOUND: &MemoryRules = &MemoryRules::SOUND;
const OLD: Version = Version(1);
const NEW: Version = Version(2);

#[test]
fn a_read_of_the_host_ends_device_bias_and_takes_what_the_device_has_modified() {
    let mut line = Line::new(OLD);
    line.access(Ask::Own, NEW);
    assert_eq!((line.cache, line.host, line.memory), (CacheState::Modified, Meta::Invalid, OLD));
    let answer = line.take_request(SOUND, MemRequest::Read);
    assert_eq!(answer, Answer { completion: Completion::CmpS, data: Some(NEW), wrote_back: true });
    assert_eq!((line.cache, line.host, line.memory), (CacheState::Shared, Meta::Shared, NEW));
    assert!(line.must_ask(Ask::Own) && !line.must_ask(Ask::Share));
}

#[test]
fn what_the_host_has_modified_is_in_memory_before_the_device_has_its_answer() {
    for (kind, answer) in [
        (Kind::Bias, Output::Request(MemRequest::Forward(Meta::Invalid))),
        (Kind::BackInvalidate, Output::BiRsp(Meta::Invalid)),
    ] {
        let mut host = host::Line { state: CacheState::Modified, ..host::Line::new(NEW) };
        let mut sent = Vec::new();
        host.take_ask(SOUND, kind, Ask::Own, &mut |output| sent.push(output));
        assert_eq!(sent, [Output::Write(NEW, Meta::Invalid)]);
        let done = host.take_completion(SOUND, kind, Completion::Cmp, OLD, &mut |output| sent.push(output));
        assert_eq!((done, sent[1..].to_vec()), (Outcome::Nothing, vec![answer]));
    }
}

#[test]
fn a_snoop_that_meets_a_request_is_answered_when_it_is_known_which_came_first() {
    for is_granted in [false, true] {
        let kind = Kind::BackInvalidate;
        let mut host = host::Line::new(OLD);
        let mut sent = Vec::new();
        host.request(MemRequest::Read);
        host.take_ask(SOUND, kind, Ask::Own, &mut |output| sent.push(output));
        if is_granted {
            host.take_completion(SOUND, kind, Completion::CmpE, OLD, &mut |output| sent.push(output));
        }
        host.take_completion(SOUND, kind, Completion::BiConflictAck, OLD, &mut |output| sent.push(output));
        assert_eq!(sent.len(), if is_granted { 1 } else { 2 }, "data come first");
        if is_granted {
            host.take_data(SOUND, kind, NEW, OLD, &mut |output| sent.push(output));
        }
        assert_eq!(sent, [Output::BiConflict, Output::BiRsp(Meta::Invalid)]);
        assert_eq!(host.state, CacheState::Invalid);
        assert_eq!(host.transaction.is_some(), !is_granted);
    }
}
