//! Random messages against a plain model: each flit is filled slot by slot from what waits, when its turn comes.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::message::Opcode;

/// A flit of 68 bytes, as the packing rules say it: which messages have their header in it, and which their last slot.
#[derive(Default)]
struct Filled {
    headers: Vec<usize>,
    ends: Vec<usize>,
}

fn data_slots(opcode: Opcode) -> usize {
    match opcode {
        Opcode::MemRd | Opcode::Cmp => 0,
        Opcode::MemWr | Opcode::MemData => 4,
        Opcode::MemWrPtl => 5,
        other => panic!("{other:?} is not sent here"),
    }
}

/// Whether S2M headers (with data, without) fit into one slot.
fn fits(is_header_slot: bool, with: usize, without: usize) -> bool {
    let formats: &[(usize, usize)] = if is_header_slot { &[(1, 1), (0, 2), (2, 0)] } else { &[(1, 2), (0, 2), (3, 0)] };
    formats.iter().any(|&(most_with, most_without)| with <= most_with && without <= most_without)
}

/// Fills flits with `messages`, in their order.
fn fill(messages: &[Opcode]) -> Vec<Filled> {
    let mut waiting: VecDeque<usize> = (0..messages.len()).collect();
    // The message of each piece of data that has not gone, in order.
    let mut data: VecDeque<usize> = VecDeque::new();
    let mut flits = Vec::new();
    while !waiting.is_empty() || !data.is_empty() {
        let mut flit = Filled::default();
        let send = |data: &mut VecDeque<usize>, flit: &mut Filled| {
            let message = data.pop_front().expect("there is data");
            if !data.contains(&message) {
                flit.ends.push(message);
            }
        };
        if data.len() > 3 {
            (0..4).for_each(|_| send(&mut data, &mut flit));
            flits.push(flit);
            continue;
        }
        let mut counts = [0; MessageClass::COUNT];
        for slot in 0..4 {
            if slot > 0 && !data.is_empty() {
                send(&mut data, &mut flit);
                continue;
            }
            let (mut with, mut without) = (0, 0);
            while let Some(&next) = waiting.front() {
                let class = messages[next].class();
                let most = [2, 1, 2, 3][class.index()];
                let (more_with, more_without) = match class {
                    MessageClass::S2mDrs => (with + 1, without),
                    MessageClass::S2mNdr => (with, without + 1),
                    _ if with + without == 0 => (usize::MAX, 0),
                    _ => break,
                };
                let is_alone = more_with == usize::MAX;
                if counts[class.index()] == most || !(is_alone || fits(slot == 0, more_with, more_without)) {
                    break;
                }
                (with, without) = (more_with, more_without);
                counts[class.index()] += 1;
                waiting.pop_front();
                flit.headers.push(next);
                let pieces = data_slots(messages[next]);
                data.extend(std::iter::repeat_n(next, pieces));
                if pieces == 0 {
                    flit.ends.push(next);
                }
                if is_alone {
                    break;
                }
            }
        }
        flits.push(flit);
    }
    flits
}

/// In which flit, from 0 on, each message ends.
fn ends(flits: &[Filled], messages: usize) -> Vec<u64> {
    let mut ends = vec![u64::MAX; messages];
    for (number, flit) in flits.iter().enumerate() {
        flit.ends.iter().for_each(|&message| ends[message] = number as u64);
    }
    ends
}

fn to_message(opcode: Opcode) -> Message {
    Message { opcode, ..read(0) }
}

proptest! {
    #[test]
    fn messages_that_wait_are_packed_as_the_rules_say(
        kinds in prop::collection::vec(0..3usize, 1..200), is_request: bool,
    ) {
        let opcodes = if is_request {
            [Opcode::MemRd, Opcode::MemWr, Opcode::MemWrPtl]
        } else {
            [Opcode::Cmp, Opcode::MemData, Opcode::MemData]
        };
        let messages: Vec<Opcode> = kinds.into_iter().map(|kind| opcodes[kind]).collect();
        let mut bench = bench_of(&link(FlitFormat::Bytes68, 4096));
        for (number, &opcode) in messages.iter().enumerate() {
            let message = Message { version: Version(number as u64), ..to_message(opcode) };
            bench.at(0, |transmitter, context| transmitter.offer(message, context));
        }
        let mut ours = vec![0; messages.len()];
        for (time, event) in bench.under_way() {
            if let Event::Arrival { message, .. } = event {
                ours[message.version.0 as usize] = (time - 6_000) / 1_000;
            }
        }
        let flits = fill(&messages);
        prop_assert_eq!(ours, ends(&flits, messages.len()));
        prop_assert_eq!(bench.transmitter.flits(), flits.len() as u64);
    }
}
