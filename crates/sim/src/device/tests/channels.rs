//! Devices with several channels of DRAM.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::device::dram::DramConfig;

/// How long each request is in a device with so many channels, in ps; requests have numbers as tags.
fn times_in_device(channels: u16, requests: &[(u64, Message)]) -> BTreeMap<u32, u64> {
    let config = DramConfig {
        channels,
        read_queue_entries: 2,
        write_queue_entries: 4,
        write_high_watermark: 3,
        write_low_watermark: 1,
        ..dram::tests::ddr4_2400()
    };
    let mut bench = bench(MediumConfig::Dram(config), 1024);
    for (ns, message) in requests {
        bench.arrives(*ns, message.clone());
    }
    bench.run();
    assert!(bench.device.is_idle());
    let stages = [Stage::DeviceQueue as usize, Stage::Media as usize];
    let time = |answer: &Message| stages.map(|stage| answer.stack.parts_ps()[stage]).into_iter().sum();
    bench.messages.iter().map(|answer| (answer.tag.0, time(answer))).collect()
}

/// A read or write that is the `number`th request.
fn request(number: usize, line: u64, is_write: bool) -> Message {
    let message = if is_write { write(line, number as u64 + 1) } else { read(line) };
    Message { tag: Tag(number as u32), ..message }
}

#[test]
fn a_full_channel_holds_up_no_requests_to_others() {
    let many = (0..20).map(|number| (0, request(number, 8 * number as u64, false)));
    let all: Vec<_> = many.chain([(1, request(20, 4, false))]).collect();
    assert_eq!(times_in_device(2, &all)[&20], times_in_device(2, &all[20..])[&20]);
}

proptest! {
    #[test]
    fn what_a_channel_does_depends_on_the_requests_to_it_alone(
        channels in prop::sample::select(vec![2_u16, 4, 8]),
        drawn in prop::collection::vec((0..400_u64, 0..4_u64, 0..4_u64, 0..16_u64, 0..3_u8), 1..100),
    ) {
        let mut requests: Vec<(u64, Message, u64)> = drawn
            .iter()
            .enumerate()
            .map(|(number, &(ns, first, second, block, kind))| {
                // Channels with low numbers get more.
                let channel = (first * second) % u64::from(channels);
                let line = (block * u64::from(channels) + channel) * 4;
                (ns, request(number, line, kind == 0), channel)
            })
            .collect();
        requests.sort_by_key(|(ns, ..)| *ns);
        let all: Vec<_> = requests.iter().map(|(ns, message, _)| (*ns, message.clone())).collect();
        let together = times_in_device(channels, &all);
        prop_assert_eq!(together.len(), requests.len());
        for channel in 0..u64::from(channels) {
            let own = requests.iter().filter(|(_, _, of)| *of == channel);
            let own: Vec<_> = own.map(|(ns, message, _)| (*ns, message.clone())).collect();
            for (number, time) in times_in_device(channels, &own) {
                prop_assert_eq!(together[&number], time, "request {} of channel {}", number, channel);
            }
        }
    }
}
