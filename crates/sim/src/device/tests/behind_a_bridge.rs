//! A host bridge with DRAM and PM behind it, under random traffic and with hardly any credits: nothing gets stuck, and
//! nobody reads what is old.

use proptest::prelude::*;

use super::*;
use crate::host_bridge::{HOST_PORT, HdmDecoder, HdmRange, HostBridge, HostBridgeConfig, PortDescription};
use fencepost_kernel::address_map::{PM_BASE, is_pm};

const BRIDGE: ComponentId = ComponentId(0);
const DRAM: ComponentId = ComponentId(1);
const PM: ComponentId = ComponentId(2);
const HOST: ComponentId = ComponentId(3);
/// Lines that the traffic is about, half of them DRAM, half PM.
const LINES: usize = 24;

struct System {
    queue: EventQueue,
    wires: Wires,
    bridge: HostBridge,
    dram: Device,
    pm: Device,
}

fn system(credits: u16, pm: PmConfig, dram: DramConfig) -> System {
    let link = LinkConfig::new(FlitFormat::Bytes68, 68.0, 5.0, credits);
    let range = |base, port| HdmRange::new(base, 1 << 30, 256, vec![PortId(port)]).unwrap();
    let decoder = HdmDecoder::new(vec![range(0, 1), range(PM_BASE, 2)]).unwrap();
    let port = PortDescription { link: link.clone(), keeps_order: true };
    let mut wires = Wires::default();
    wires.connect((BRIDGE, HOST_PORT), (HOST, PortId(0)));
    wires.connect((BRIDGE, PortId(1)), (DRAM, DEVICE_PORT));
    wires.connect((BRIDGE, PortId(2)), (PM, DEVICE_PORT));
    System {
        queue: EventQueue::default(),
        wires,
        bridge: HostBridge::new(&HostBridgeConfig { latency_ns: 3.0 }, decoder, &[port.clone(), port]),
        dram: Device::new(&MediumConfig::Dram(dram), std::slice::from_ref(&link), Interleave::none(0).unwrap()),
        pm: Device::new(&MediumConfig::Pm(pm), &[link], Interleave::none(PM_BASE).unwrap()),
    }
}

impl System {
    /// The next answer to the host, if there is one before nothing happens any more.
    fn next_answer(&mut self) -> Option<(Time, Message)> {
        while let Some((time, target, event)) = self.queue.pop() {
            let mut context = Context::new(time, target, &mut self.queue, &self.wires);
            match target {
                BRIDGE => self.bridge.handle(event, &mut context),
                DRAM => self.dram.handle(event, &mut context),
                PM => self.pm.handle(event, &mut context),
                _ => match event {
                    Event::Arrival { message, .. } => return Some((time, message)),
                    other => panic!("the host got {other:?}"),
                },
            }
        }
        None
    }
}

fn line(index: usize) -> LineAddress {
    // Every eighth line, so that some share banks and rows.
    let base = if index.is_multiple_of(2) { 0 } else { PM_BASE / 64 };
    LineAddress(base + index as u64 * 8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn everything_is_answered_and_reads_see_every_complete_write(
        requests in prop::collection::vec((0u64..30, 0..LINES, any::<bool>(), any::<bool>()), 1..300),
        credits in 1u16..4, is_queue in any::<bool>(), write_merging in any::<bool>(), entries in 1u16..6,
        takes_turns in any::<bool>(), handed_over_writes in 0u16..4, row_buffer in any::<bool>(),
    ) {
        let write_turns = if takes_turns { WriteTurns::Batches } else { WriteTurns::ReadsFirst };
        let ack_at = if is_queue { AckAt::Queue } else { AckAt::Media };
        let pm = PmConfig {
            write_merging,
            handed_over_writes,
            row_buffer,
            row_bytes: 256,
            read_queue_entries: entries,
            write_queue_entries: entries,
            write_high_watermark: entries,
            write_low_watermark: entries - 1,
            write_idle_watermark: 0,
            write_turns,
            requests_per_turn: 2,
            burst_ns: 3.0,
            ..pm::tests::nvm(ack_at)
        };
        let dram = DramConfig {
            read_queue_entries: entries,
            write_queue_entries: entries + 1,
            write_high_watermark: entries,
            write_low_watermark: entries - 1,
            write_idle_watermark: 0,
            write_turns,
            requests_per_turn: 2,
            ..dram::tests::ddr4_2400()
        };
        let mut system = system(credits, pm, dram);
        let mut issued = [0u64; LINES];
        let mut complete = [0u64; LINES];
        // By tag: the line, and the version that a read must see at least.
        let mut asked: Vec<(usize, u64)> = Vec::new();
        let mut at = 0;
        for (gap, index, is_write, is_partial) in requests {
            at += gap * 1000;
            let now = Time::from_ps(at);
            let tag = Tag(asked.len() as u32);
            let message = if is_write {
                issued[index] += 1;
                let mask = if is_partial { ByteMask(0xff00) } else { ByteMask::FULL };
                Message::write(line(index), tag, Cause::Flush, Version(issued[index]), mask, now)
            } else {
                Message::read(line(index), tag, Cause::DemandRead, now)
            };
            // The bridge lets no request pass a write to its line, so a read sees all that were issued before it.
            asked.push((index, issued[index]));
            system.queue.push(now, BRIDGE, Event::Arrival { port: HOST_PORT, message });
        }
        let mut answers = 0;
        while let Some((time, answer)) = system.next_answer() {
            let (index, least) = asked[answer.tag.0 as usize];
            answers += 1;
            prop_assert!(answer.version.0 >= least && answer.version.0 <= issued[index]);
            prop_assert_eq!(answer.stack.charged_until(), time);
            let parts: u64 = answer.stack.parts_ps().iter().copied().sum();
            prop_assert_eq!(parts, answer.stack.total().as_ps());
            if answer.class() == MessageClass::S2mNdr {
                complete[index] = complete[index].max(answer.version.0);
                if is_pm(line(index)) {
                    prop_assert!(system.pm.durable_version(line(index)).unwrap().0 >= complete[index]);
                }
            }
        }
        prop_assert_eq!(answers, asked.len());
        prop_assert!(system.bridge.is_idle() && system.dram.is_idle() && system.pm.is_idle());
        prop_assert_eq!(complete, issued);
    }
}
