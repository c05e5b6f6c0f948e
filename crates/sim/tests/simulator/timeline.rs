//! Requests that are followed: their slices are their latency stacks, nothing changes by following them, and the
//! Perfetto trace says the same.

use std::collections::BTreeMap;

use fencepost_kernel::message::RequestName;
use fencepost_kernel::message::{Cause, Opcode, Stage};
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::{Doing, Place, Selection, Slice, Trace};
use fencepost_record::{Event, ThreadId};
use fencepost_sim::host::ThreadPlacement;
use fencepost_sim::replay::simulation::Options;
use fencepost_sim::replay::simulation::{Progress, Simulation};
use fencepost_sim::switch::Scheme;
use fencepost_sim::timeline::Timeline;

use super::machine::machine;
use super::program::{Instruction, LittleProgram, ProgramBuilder, options, persistent_line};

const LINES: u64 = 20;

/// Stores and flushes of some lines, each read again and fenced.
fn persisting() -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for line in 0..LINES {
        builder.one(0, Instruction::Store, persistent_line(line));
        builder.one(0, Instruction::Clflush, persistent_line(line));
        builder.one(0, Instruction::Mfence, 0);
        builder.one(0, Instruction::Load, persistent_line(line));
    }
    builder.finish()
}

fn followed(name: &str, scheme: Scheme, selection: Selection) -> Timeline {
    let simulation = Simulation::new(&machine(name, &[]), scheme, &[persisting().on_host()], options());
    let timeline = simulation.and_then(|it| it.run_traced(Trace::new(selection, 100_000), &Progress::default()));
    timeline.unwrap_or_else(|error| panic!("{error}"))
}

fn slices_of(timeline: &Timeline, name: RequestName) -> Vec<Slice> {
    timeline.trace().slices().iter().filter(|slice| slice.request == name).copied().collect()
}

fn stages(slices: &[Slice]) -> Vec<Stage> {
    let stage = |slice: &Slice| match slice.doing {
        Doing::Stage(stage) => Some(stage),
        _ => None,
    };
    slices.iter().filter_map(stage).collect()
}

#[test]
fn every_request_s_slices_follow_each_other_from_its_begin_to_its_end() {
    for name in ["pcs-table1", "pcs-table1-0sw", "pcs-table1-2sw"] {
        for scheme in Scheme::ALL {
            if name == "pcs-table1-0sw" && scheme != Scheme::Nopb {
                continue;
            }
            let timeline = followed(name, scheme, Selection::FromFirstPersist(None));
            let requests = timeline.trace().requests();
            assert!(requests.iter().filter(|request| request.cause.is_persist()).count() as u64 == LINES);
            assert_eq!(requests.iter().any(|request| request.cause == Cause::Drain), scheme != Scheme::Nopb);
            for (index, request) in requests.iter().enumerate() {
                let slices = slices_of(&timeline, RequestName(index as u32 + 1));
                let stack: Vec<_> = slices.iter().filter(|slice| matches!(slice.doing, Doing::Stage(_))).collect();
                assert!(stack.is_sorted_by(|one, next| one.until == next.from), "{name} {scheme}: {slices:#?}");
                assert!(stack.iter().all(|slice| slice.until > slice.from));
                assert_eq!(stack.last().map(|slice| slice.until), request.completed, "{name} {scheme}: {request:?}");
            }
        }
    }
}

#[test]
fn a_persist_can_be_followed_from_the_core_to_the_medium_and_back() {
    let timeline = followed("pcs-table1", Scheme::Pb, Selection::Persist(3));
    let [persist, drain] = timeline.trace().requests() else {
        panic!("a persist and its drain: {:?}", timeline.trace().requests())
    };
    assert_eq!((persist.cause, drain.cause, drain.line), (Cause::Flush, Cause::Drain, persist.line));
    assert_eq!((persist.core, &drain.drains[..]), (Some(0), &[RequestName(1)][..]));
    let own = slices_of(&timeline, RequestName(1));
    let way = [
        Stage::Core,
        Stage::HostBridge,
        Stage::Link,
        Stage::SwitchPipeline,
        Stage::PersistBufferAccess,
        Stage::SwitchPipeline,
        Stage::Link,
        Stage::HostBridge,
    ];
    assert_eq!(stages(&own), way);
    let back = own.last().expect("it has slices");
    assert_eq!((back.doing, back.place, Some(back.from)), (Doing::ToCore, Place::Core(0), persist.completed));
    let of_drain = slices_of(&timeline, RequestName(2));
    // Into the device, and out of it.
    let (into, out) = (Stage::DeviceQueue, Stage::DeviceQueue);
    let way = [Stage::SwitchPipeline, Stage::Link, into, out, Stage::Link, Stage::SwitchPipeline];
    assert_eq!(stages(&of_drain), way);
    assert!(of_drain.iter().any(|slice| slice.doing == Doing::MediaWrite && matches!(slice.place, Place::Bank(_))));
}

#[test]
fn a_window_holds_what_begins_in_it() {
    let (from, until) = (Time::from_ps(2_000_000), Time::from_ps(4_000_000));
    let timeline = followed("pcs-table1", Scheme::Nopb, Selection::Window(from, until));
    let begins: Vec<Time> = (1..=timeline.trace().requests().len())
        .map(|name| slices_of(&timeline, RequestName(name as u32))[0].from)
        .collect();
    assert!(begins.len() > 2 && begins.iter().all(|begin| (from..until).contains(begin)), "{begins:?}");
}

#[test]
fn after_its_limit_a_trace_takes_up_nothing_more() {
    let simulation = Simulation::new(&machine("pcs-table1", &[]), Scheme::Nopb, &[persisting().on_host()], options());
    let trace = Trace::new(Selection::FromFirstPersist(None), 30);
    let timeline = simulation.and_then(|it| it.run_traced(trace, &Progress::default())).expect("it runs");
    let slices = timeline.trace().slices().len();
    assert!((30..80).contains(&slices), "what was under way is followed to its end: {slices}");
    assert!(timeline.trace().requests().iter().all(|request| request.completed.is_some()));
}

/// A field of a protocol buffer: its number and its value.
#[derive(Debug, PartialEq)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn fields(mut bytes: &[u8]) -> Vec<(u32, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a number has an end");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (text, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(text)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key as u32 >> 3, value));
    }
    fields
}

fn number(message: &[u8], field: u32) -> Option<u64> {
    fields(message).into_iter().find_map(|(key, value)| match value {
        Field::Number(value) if key == field => Some(value),
        _ => None,
    })
}

fn bytes(message: &[u8], field: u32) -> Vec<&[u8]> {
    let of_field = |(key, value)| match value {
        Field::Bytes(value) if key == field => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of_field).collect()
}

#[test]
fn the_perfetto_trace_has_each_slice_on_a_track_of_its_component() {
    let timeline = followed("pcs-table1", Scheme::Pb, Selection::Persist(3));
    let file = timeline.to_perfetto();
    assert_eq!(
        file,
        followed("pcs-table1", Scheme::Pb, Selection::Persist(3)).to_perfetto(),
        "the same bytes each time"
    );
    let packets = bytes(&file, 1);
    let interned = bytes(packets[0], 12)[0];
    let names: BTreeMap<u64, String> = bytes(interned, 2)
        .into_iter()
        .map(|name| (number(name, 1).unwrap(), String::from_utf8(bytes(name, 2)[0].to_vec()).unwrap()))
        .collect();
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut open: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let mut slices = Vec::new();
    let mut counters = 0;
    for packet in &packets {
        for descriptor in bytes(packet, 60) {
            let name = String::from_utf8(bytes(descriptor, 2)[0].to_vec()).unwrap();
            let parent = number(descriptor, 5).map(|parent| tracks[&parent].clone());
            tracks.insert(
                number(descriptor, 1).unwrap(),
                parent.map_or(name.clone(), |parent| format!("{parent}/{name}")),
            );
        }
        for event in bytes(packet, 11) {
            let (time, track) = (number(packet, 8).unwrap(), number(event, 11).unwrap());
            assert!(tracks.contains_key(&track), "an event of a track that nobody described");
            match number(event, 9) {
                Some(1) => {
                    let begun = (names[&number(event, 10).unwrap()].clone(), time);
                    assert_eq!(open.insert(track, begun), None, "slices of one lane overlap");
                }
                Some(2) => {
                    let (name, begun) = open.remove(&track).expect("it began");
                    slices.push((tracks[&track].clone(), name, begun, time));
                }
                Some(4) => counters += 1,
                other => panic!("an event of type {other:?}"),
            }
        }
    }
    assert!(open.is_empty() && counters > 0);
    assert_eq!(slices.len(), timeline.trace().slices().len());
    for place in
        ["host0/core 0", "host0_bridge/bridge", "host0_bridge/link to switch0", "switch0/persist buffer", "pm0/queue"]
    {
        assert!(slices.iter().any(|(track, ..)| track == place), "{place}: {slices:?}");
    }
    let of_link = slices.iter().find(|(track, ..)| track == "host0_bridge/link to switch0").expect("it is there");
    let link = timeline.trace().slices().iter().find(|slice| slice.doing == Doing::Stage(Stage::Link)).unwrap();
    assert_eq!((of_link.2, of_link.3), (link.from.as_ps() / 1000, link.until.as_ps() / 1000));
}

#[test]
fn following_requests_changes_nothing() {
    let machine = machine("pcs-table1", &[]);
    let simulation = || Simulation::new(&machine, Scheme::PbRf, &[persisting().on_host()], options()).unwrap();
    let plain = simulation().run(&Progress::default()).unwrap();
    let persists = |of: &Timeline| of.trace().requests().iter().filter(|request| request.cause.is_persist()).count();
    let timeline = followed("pcs-table1", Scheme::PbRf, Selection::FromFirstPersist(None));
    let last = timeline.trace().requests().iter().filter_map(|request| request.completed).max();
    assert!(last <= Some(plain.intervals[0].end + plain.intervals[0].counted));
    let counted = plain.stats.get("host0.memory_border.persists.latency").expect("it is counted");
    let fencepost_kernel::stats::StatsNode::Histogram(latency) = counted else { panic!("it is a distribution") };
    assert_eq!(latency.count(), persists(&timeline) as u64);
    let of_persists: u64 = (1..)
        .zip(timeline.trace().requests())
        .filter(|(_, request)| request.cause.is_persist())
        .flat_map(|(name, _)| slices_of(&timeline, RequestName(name)))
        .filter(|slice| matches!(slice.doing, Doing::Stage(stage) if !matches!(stage, Stage::Core | Stage::Cache)))
        .map(|slice| slice.until.since(slice.from).as_ps())
        .sum();
    assert_eq!(of_persists, latency.sum().as_ps(), "the slices of all persists sum to their latencies");
}

const TWO_SOCKETS: [&str; 5] = [
    "core.count=2",
    "sockets.count=2",
    "socket_link.bandwidth_gb_per_s=68",
    "socket_link.latency_ns=40",
    "socket_link.credits=64",
];

/// Two threads, which store to the same lines, flush them and read them, one at each of two sockets.
fn followed_over_sockets(scheme: Scheme, selection: Selection) -> Timeline {
    let mut builder = ProgramBuilder::new();
    let clock = builder.tick();
    builder.event(0, &Event::ThreadCreate { clock, thread: ThreadId(1) });
    for line in 0..LINES {
        for thread in 0..2 {
            builder.one(thread, Instruction::Store, persistent_line(line));
            builder.one(thread, Instruction::Clwb, persistent_line(line));
            builder.one(thread, Instruction::Sfence, 0);
            builder.one(thread, Instruction::Store, persistent_line(line));
            builder.one(thread, Instruction::Load, persistent_line((line + 1) % LINES));
        }
    }
    let options = Options { threads: ThreadPlacement::Spread, ..options() };
    let machine = machine("pcs-table1", &TWO_SOCKETS);
    let simulation = Simulation::new(&machine, scheme, &[builder.finish().on_host()], options);
    let timeline = simulation.and_then(|it| it.run_traced(Trace::new(selection, 100_000), &Progress::default()));
    timeline.unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a message is on its way to other caches on behalf of a request, or back from them; until it leaves, the
/// request itself waits.
fn is_of_snoop(slice: &Slice) -> bool {
    use Opcode::{SnoopInvalidate, SnoopShare, SnoopedDirty, SnoopedInWriteBack, SnoopedNothing};
    let opcodes = [SnoopShare, SnoopInvalidate, SnoopedNothing, SnoopedDirty, SnoopedInWriteBack];
    slice.message.is_some_and(|message| opcodes.contains(&message)) && slice.doing != Doing::Stage(Stage::HostBridge)
}

#[test]
fn between_sockets_too_slices_follow_each_other_and_snoops_lie_beside_them() {
    for scheme in Scheme::ALL {
        let timeline = followed_over_sockets(scheme, Selection::Window(Time::ZERO, Time::from_ps(u64::MAX)));
        let mut snooping = 0;
        for (name, request) in (1..).map(RequestName).zip(timeline.trace().requests()) {
            let (snoops, own): (Vec<_>, Vec<_>) = slices_of(&timeline, name).into_iter().partition(is_of_snoop);
            let stack: Vec<_> = own.iter().filter(|slice| matches!(slice.doing, Doing::Stage(_))).collect();
            assert!(stack.is_sorted_by(|one, next| one.until == next.from), "{scheme}: {stack:#?}");
            assert_eq!(stack.last().map(|slice| slice.until), request.completed, "{scheme}: {request:?}");
            // While others are asked, the request waits at the home agent.
            let waits = |snoop: &Slice| {
                own.iter().any(|slice| {
                    slice.doing == Doing::Stage(Stage::HostBridge)
                        && slice.from <= snoop.from
                        && snoop.until <= slice.until
                })
            };
            assert!(snoops.iter().all(waits), "{scheme}: {snoops:#?} beside {own:#?}");
            snooping += usize::from(!snoops.is_empty());
        }
        assert!(snooping > 10, "{scheme}: {snooping} requests snoop");
    }
}

#[test]
fn a_timeline_names_the_sockets_between_which_a_request_goes() {
    let timeline = followed_over_sockets(Scheme::Nopb, Selection::Window(Time::ZERO, Time::from_ps(u64::MAX)));
    let json = timeline.to_json();
    let requests = json["requests"].as_array().expect("they are a list");
    let tracks = requests.iter().flat_map(|request| request["slices"].as_array().expect("they are a list"));
    let tracks: Vec<_> = tracks.filter_map(|slice| slice["track"].as_str()).collect();
    for track in [
        "last-level cache of socket 0",
        "last-level cache of socket 1",
        "home agent of socket 0",
        "link to socket 0",
        "link to socket 1",
        "bridge",
    ] {
        assert!(tracks.contains(&track), "{track}");
    }
    assert!(!tracks.contains(&"link to host0") && !tracks.contains(&"last-level cache"));
}
