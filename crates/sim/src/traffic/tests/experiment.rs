//! Streams on whole machines: times that can be computed by hand, laws that hold for any queue, and what is refused.

use super::super::{Pattern, StreamConfig};
use super::reads;
use crate::config::{Machine, SourceText};
use crate::switch::Scheme;
use crate::system::Stepped;
use crate::traffic_experiment::{Experiment, Measurement};
use fencepost_kernel::message::Stage;
use fencepost_kernel::trace::{Selection, Trace};

fn machine(sets: &[&str]) -> Machine {
    let text = include_str!("../../../../../machines/pcs-table1.toml").to_owned();
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let source = SourceText { name: "pcs-table1".to_owned(), text };
    Machine::resolve(source, &|_| None, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

fn pm_reads() -> StreamConfig {
    StreamConfig { memory: "pm".to_owned(), ..reads() }
}

fn experiment(streams: Vec<StreamConfig>) -> Experiment {
    Experiment { streams: vec![streams], warm_up_ns: 5_000.0, measure_ns: 20_000.0, seed: 1, ..Experiment::default() }
}

fn run(machine: &Machine, experiment: &Experiment) -> Measurement {
    experiment.run(machine, Scheme::Nopb).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(streams: Vec<StreamConfig>) -> String {
    experiment(streams).run(&machine(&[]), Scheme::Nopb).expect_err("it is refused").to_string()
}

fn mean_ns(measurement: &Measurement, stream: usize, direction: &str) -> f64 {
    let json = measurement.to_json();
    json["hosts"][0]["streams"][stream][direction]["latency_ns"]["mean"].as_f64().expect("something was measured")
}

fn bandwidth(measurement: &Measurement, host: usize, stream: usize, direction: &str) -> f64 {
    let json = measurement.to_json();
    json["hosts"][host]["streams"][stream][direction]["bandwidth_gb_per_s"].as_f64().expect("a number")
}

#[test]
fn an_unloaded_read_takes_the_sum_of_what_lies_on_its_way() {
    let sets = ["link.bandwidth_gb_per_s=68", "switch.crossbar_flit_ns=0", "core.clock_ghz=1", "pm.burst_ns=0"];
    let measurement = run(&machine(&sets), &experiment(vec![StreamConfig { dependent: true, ..pm_reads() }]));
    // L1 1 + 1, L2 10 + 1 cycles of 1 ns; host bridge 20 there and back; two links of 25 and a flit of 1 there; back a
    // header and four slots of data take two flits on each; a switch of four stages of 2.5 each way; the controller 10
    // in and out; the medium 100.
    let expected = 13.0 + 2.0 * 20.0 + 2.0 * (25.0 + 1.0) + 2.0 * (25.0 + 2.0) + 2.0 * 10.0 + 2.0 * 10.0 + 100.0;
    assert!((mean_ns(&measurement, 0, "reads") - expected).abs() < 1e-9, "{}", mean_ns(&measurement, 0, "reads"));
}

#[test]
fn credits_that_nobody_waits_for_change_nothing_by_being_no_events() {
    let few = ["link.request_credits=3", "link.data_response_credits=2", "pm.read_queue_entries=4"];
    let machines = [few.to_vec(), [&few[..], &["link.bit_error_rate=3e-5"]].concat()].map(|sets| machine(&sets));
    let busy = StreamConfig { pattern: Pattern::Random, outstanding: 64, reads: 2, writes: 1, ..pm_reads() };
    let seldom = StreamConfig { outstanding: 2, inject_delay_ns: 300.0, ..pm_reads() };
    for (machine, scheme) in machines.iter().flat_map(|machine| Scheme::ALL.map(|scheme| (machine, scheme))) {
        for streams in [vec![busy.clone()], vec![seldom.clone()], vec![busy.clone(), seldom.clone()]] {
            assert_the_same_traced(machine, scheme, &experiment(streams));
        }
    }
}

/// Eight hosts, each at a switch of its own, and eight PM devices below the one that joins them.
fn eight_hosts() -> Machine {
    let all = |text: &str| (0..8).map(|number| text.replace('#', &number.to_string())).collect::<Vec<_>>().join(", ");
    machine(&[
        &format!("fabric.hosts=[{}]", all("'host#'")),
        &format!("fabric.switches=[{}, 'root']", all("'leaf#'")),
        &format!("fabric.devices=[{}]", all("'pm#'")),
        &format!("fabric.edges=[{}]", all("'host# -> leaf#', 'leaf# -> root', 'root -> pm#'")),
        &format!("fabric.interleave={{pool = {{devices = [{}], granularity_bytes = 256}}}}", all("'pm#'")),
    ])
}

/// Clients of a store of values of 1 KB, which change half of what they ask for.
fn clients(seed: u64) -> Experiment {
    let client = StreamConfig {
        pattern: Pattern::Random,
        request_bytes: 1024,
        writes: 1,
        dependent: true,
        inject_delay_ns: 50.0,
        inject_jitter_ns: 100.0,
        ..pm_reads()
    };
    Experiment { seed, measure_ns: 40_000.0, ..experiment(vec![client; 8]) }
}

#[test]
fn hosts_that_come_to_a_switch_at_the_same_instant_have_the_same_turns_whether_credits_are_events_or_not() {
    for (seed, scheme) in (0..).zip(Scheme::ALL) {
        let briefly = Experiment { warm_up_ns: 2_000.0, measure_ns: 8_000.0, ..clients(seed) };
        assert_the_same_traced(&eight_hosts(), scheme, &briefly);
    }
}

#[test]
#[ignore = "slow: each request of eight hosts is followed"]
fn hosts_that_meet_for_long_have_the_same_turns_whether_credits_are_events_or_not() {
    for (seed, scheme) in (0..).zip(Scheme::ALL) {
        assert_the_same_traced(&eight_hosts(), scheme, &clients(seed));
    }
}

#[test]
fn no_host_is_kept_from_a_full_persist_buffer_by_another() {
    for scheme in Scheme::ALL {
        let measurement = clients(1).run(&eight_hosts(), scheme).unwrap_or_else(|error| panic!("{error}"));
        let json = measurement.to_json();
        let written = json["hosts"].as_array().unwrap().iter().map(|host| {
            let streams = host["streams"].as_array().unwrap().iter();
            streams.map(|stream| stream["writes"]["count"].as_u64().unwrap()).sum::<u64>()
        });
        let written: Vec<u64> = written.collect();
        let (least, most) = (written.iter().min().unwrap(), written.iter().max().unwrap());
        // A persist buffer gives each host a turn; under nopb chance says how busy the devices are that a host's
        // clients want.
        assert!(
            *least > 0 && (most - least) * 4 <= *most,
            "{scheme}: one has less than three quarters of another: {written:?}"
        );
    }
}

/// Hosts in step: all send the same at the same instants, each to its own part of the memory.
#[test]
fn of_sixteen_equal_hosts_in_step_none_is_served_better_for_its_number() {
    let hosts = 16;
    let all =
        |text: &str| (0..hosts).map(|number| text.replace('#', &number.to_string())).collect::<Vec<_>>().join(", ");
    let hosts_of = format!("fabric.hosts=[{}]", all("'host#'"));
    let at_one_switch = format!("fabric.edges=[{}, 'switch -> pm0']", all("'host# -> switch'"));
    let at_one_switch = machine(&[&hosts_of, "fabric.switches=['switch']", "fabric.devices=['pm0']", &at_one_switch]);
    let at_one_device = format!("fabric.edges=[{}]", all("'host# -> pm0'"));
    let at_one_device = machine(&[&hosts_of, "fabric.switches=[]", "fabric.devices=['pm0']", &at_one_device]);
    let saturating = StreamConfig { outstanding: 8, ..pm_reads() };
    let in_bursts = StreamConfig { dependent: true, inject_delay_ns: 3_000.0, ..pm_reads() };
    let loads = [(saturating, 1_000_000.0), (in_bursts, 8_000_000.0)];
    for (machine, (stream, measure_ns)) in
        [&at_one_switch, &at_one_device].into_iter().flat_map(|machine| loads.iter().map(move |load| (machine, load)))
    {
        let streams = vec![vec![stream.clone()]; hosts];
        let experiment = Experiment { streams, measure_ns: *measure_ns, ..experiment(Vec::new()) };
        let json = run(machine, &experiment).to_json();
        for path in ["bandwidth_gb_per_s", "latency_ns/mean", "latency_ns/p99"] {
            let of_host = |host: usize| json.pointer(&format!("/hosts/{host}/streams/0/reads/{path}"));
            let figures: Vec<f64> = (0..hosts).map(|host| of_host(host).unwrap().as_f64().unwrap()).collect();
            let mean = figures.iter().sum::<f64>() / hosts as f64;
            let worst = figures.iter().map(|figure| (figure / mean - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 0.01, "{path} of each host: {figures:?}");
        }
    }
}

/// What is traced has all credits as events, and the same figures.
fn assert_the_same_traced(machine: &Machine, scheme: Scheme, experiment: &Experiment) {
    let measured = |is_traced: bool| {
        let mut system = experiment.system(machine, scheme).expect("the machine can run it");
        if is_traced {
            system.trace(Trace::new(Selection::FromFirstPersist(None), 1));
        }
        experiment.measure(machine, system).unwrap_or_else(|error| panic!("{error}"))
    };
    let (held, as_events) = (measured(false), measured(true));
    assert!(held.to_json() == as_events.to_json(), "{scheme}: another result where credits are events");
    assert!(held.events < as_events.events, "{scheme}: {} and {} events", held.events, as_events.events);
}

#[test]
fn the_parts_of_a_latency_sum_to_the_whole_under_load_too() {
    let busy = StreamConfig { pattern: Pattern::Random, outstanding: 64, reads: 2, writes: 1, ..pm_reads() };
    let large = StreamConfig { request_bytes: 4096, outstanding: 2, lines_outstanding: Some(24), ..pm_reads() };
    let probe = StreamConfig { dependent: true, ..pm_reads() };
    for scheme in Scheme::ALL {
        let measurement =
            experiment(vec![busy.clone(), large.clone(), probe.clone()]).run(&machine(&[]), scheme).unwrap();
        let json = measurement.to_json();
        for (stream, direction) in [(0, "reads"), (0, "writes"), (1, "reads"), (2, "reads")] {
            let direction = &json["hosts"][0]["streams"][stream][direction];
            let parts: f64 = Stage::NAMES.iter().map(|stage| direction["parts_ns"][stage].as_f64().unwrap()).sum();
            let whole = direction["latency_ns"]["mean"].as_f64().unwrap();
            assert!((parts - whole).abs() < 1e-6 * whole, "{scheme}: {parts} is not {whole}");
        }
    }
}

#[test]
fn requests_under_way_are_throughput_times_latency() {
    let stream = StreamConfig { pattern: Pattern::Random, outstanding: 40, ..pm_reads() };
    let measurement = run(&machine(&[]), &experiment(vec![stream]));
    let in_flight = bandwidth(&measurement, 0, 0, "reads") / 64.0 * mean_ns(&measurement, 0, "reads");
    assert!((in_flight - 40.0).abs() < 0.5, "Little's law says {in_flight}");
}

#[test]
fn load_makes_requests_wait_and_never_exceeds_the_link() {
    let with = |outstanding| {
        run(&machine(&["pm.read_ns=1", "pm.burst_ns=0"]), &experiment(vec![StreamConfig { outstanding, ..pm_reads() }]))
    };
    let (idle, busy) = (with(1), with(128));
    assert!(mean_ns(&busy, 0, "reads") > 1.2 * mean_ns(&idle, 0, "reads"));
    let links = &busy.to_json()["links"];
    let rates: Vec<f64> =
        links.as_array().unwrap().iter().map(|link| link["utilisation_rate"].as_f64().unwrap()).collect();
    assert!(rates.iter().all(|rate| *rate <= 1.0), "{rates:?}");
    // 64 of each 72 bytes of slots are data (a header is half a slot), and 64 of each 68 bytes of a flit are slots.
    let limit = 63.0 * 64.0 / 68.0 * 64.0 / 72.0;
    assert!(bandwidth(&busy, 0, 0, "reads") <= limit);
}

#[test]
fn the_same_experiment_gives_the_same_figures_and_another_seed_others() {
    let stream = StreamConfig { pattern: Pattern::Random, outstanding: 32, reads: 3, writes: 1, ..pm_reads() };
    let text =
        |seed| run(&machine(&[]), &Experiment { seed, ..experiment(vec![stream.clone()]) }).to_json().to_string();
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn when_the_streams_have_ended_every_credit_has_come_back() {
    let stream = |memory: &str| StreamConfig {
        memory: memory.to_owned(),
        pattern: Pattern::Random,
        outstanding: 48,
        reads: 1,
        writes: 1,
        requests: Some(2_000),
        footprint_bytes: 1 << 16,
        ..reads()
    };
    for scheme in Scheme::ALL {
        let experiment = experiment(vec![stream("dram"), stream("pm"), stream("pm0")]);
        let mut system = experiment.system(&machine(&[]), scheme).unwrap();
        system.start();
        while system.step() != Stepped::Nowhere {}
        assert!(system.is_finished() && system.is_idle(), "{scheme}: {:?}", system.waiting());
        let stats = system.stats();
        for number in 0..3 {
            let requests = |direction| stats.counter(&format!("host0.stream{number}.{direction}.requests"));
            assert_eq!((requests("reads"), requests("writes")), (1_000, 1_000));
        }
    }
}

#[test]
fn every_host_gets_its_streams_and_equal_hosts_equal_shares() {
    let two = [
        r#"fabric.hosts=["host0","host1"]"#,
        r#"fabric.edges=["host0 -> switch0","host1 -> switch0","switch0 -> pm0"]"#,
    ];
    let machine = machine(&two);
    let stream = StreamConfig { pattern: Pattern::Random, outstanding: 64, ..pm_reads() };
    let measurement = run(&machine, &experiment(vec![stream.clone()]));
    let shares = [0, 1].map(|host| bandwidth(&measurement, host, 0, "reads"));
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.02, "{shares:?}");
    let apart = Experiment { streams: vec![vec![], vec![stream]], ..experiment(vec![]) };
    let measurement = run(&machine, &apart);
    assert_eq!(measurement.to_json()["hosts"][0]["streams"].as_array().unwrap().len(), 0);
    assert!(bandwidth(&measurement, 1, 0, "reads") > 1.5 * shares[1], "alone it has what both had");
}

#[test]
fn a_device_of_an_interleaved_set_is_a_memory_of_its_own() {
    let sets = [
        r#"fabric.devices=["pm0","pm1"]"#,
        r#"fabric.edges=["host0 -> switch0","switch0 -> pm0","switch0 -> pm1"]"#,
        r#"fabric.interleave.pool.devices=["pm0","pm1"]"#,
        "fabric.interleave.pool.granularity_bytes=256",
    ];
    let machine = machine(&sets);
    let to = |memory: &str| {
        let stream = StreamConfig { memory: memory.to_owned(), outstanding: 8, ..reads() };
        let measurement = run(&machine, &experiment(vec![stream]));
        ["pm0", "pm1"].map(|device| measurement.stats.counter(&format!("{device}.reads")))
    };
    assert!(matches!(to("pm0"), [reads, 0] if reads > 0));
    assert!(matches!(to("pm1"), [0, reads] if reads > 0));
    let [even, odd] = to("pm");
    assert!(even.abs_diff(odd) <= 8, "{even} and {odd}");
}

#[test]
fn traffic_that_cannot_be_is_refused_with_the_reason() {
    let refused = |change: fn(&mut StreamConfig)| {
        let mut stream = reads();
        change(&mut stream);
        refusal(vec![stream])
    };
    assert_eq!(
        refused(|stream| stream.memory = "ssd".into()),
        "there is no memory `ssd`; there are: dram, pm, expander, accelerator, pm0"
    );
    assert!(refused(|stream| stream.request_bytes = 96).contains("a multiple of 64 up to 16384"));
    assert!(refused(|stream| stream.request_bytes = 32_768).contains("a multiple of 64 up to 16384"));
    assert!(refused(|stream| stream.reads = 0).contains("reads or writes"));
    assert!(refused(|stream| stream.outstanding = 0).contains("1 to 65536"));
    assert!(refused(|stream| stream.lines_outstanding = Some(0)).contains("at least one line"));
    assert!(refused(|stream| stream.inject_delay_ns = -1.0).contains("inject delay"));
    assert!(refused(|stream| stream.inject_jitter_ns = f64::NAN).contains("inject jitter"));
    assert!(refused(|stream| stream.footprint_bytes = 63).contains("holds no request"));
    assert!(refused(|stream| stream.footprint_bytes = 1 << 40).contains("do not fit into the 17179869184 bytes"));
    assert!(
        refusal(vec![StreamConfig { dependent: true, outstanding: 2, ..reads() }]).contains("1 request outstanding")
    );
    let two_hosts = Experiment { streams: vec![vec![], vec![]], ..experiment(vec![]) };
    let error = two_hosts.run(&machine(&[]), Scheme::Nopb).unwrap_err().to_string();
    assert_eq!(error, "each of 1 hosts needs its streams, and there are 2");
}

#[test]
fn an_expander_is_dram_behind_the_fabric_and_persists_nothing() {
    let sets = [
        r#"fabric.expanders=["mem0"]"#,
        r#"fabric.edges=["host0 -> switch0","switch0 -> pm0","switch0 -> mem0"]"#,
        "expander.controller_latency_ns=30",
    ];
    let stream = |memory: &str| StreamConfig {
        memory: memory.to_owned(),
        pattern: Pattern::Random,
        reads: 1,
        writes: 1,
        outstanding: 16,
        ..reads()
    };
    let machine = machine(&sets);
    for memory in ["expander", "mem0"] {
        let measurement = experiment(vec![stream(memory)]).run(&machine, Scheme::PbRf).unwrap();
        let count = |path: &str| measurement.stats.counter(path);
        assert!(count("mem0.reads") > 100 && count("mem0.writes") > 100);
        assert_eq!((count("pm0.reads"), count("switch0.persist_buffer.writes")), (0, 0));
        assert!(count("mem0.dram.reads") > 100);
    }
    let probe = StreamConfig { dependent: true, outstanding: 1, ..stream("mem0") };
    let json = run(&machine, &experiment(vec![StreamConfig { writes: 0, ..probe }])).to_json();
    let parts = &json["hosts"][0]["streams"][0]["reads"]["parts_ns"];
    let part = |stage: &str| parts[stage].as_f64().unwrap();
    // Two links there and back, with the flits of a request and of a line; a switch of four stages of 2.5 there and
    // back.
    assert!((part("link") - 4.0 * 25.0 - 2.0 * 1.079 - 4.0 * 1.079).abs() < 0.01, "{parts}");
    assert!((part("switch_pipeline") - 20.0).abs() < 1e-9, "{parts}");
    assert!(part("device_queue") >= 60.0, "the expander's own controller takes 30 in and out: {parts}");
}
