//! Random traffic on the smallest buffers.

use proptest::prelude::*;

use super::*;

/// What hosts do in a random run: each has lines of its own and at most one request for each line under way.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Read,
    Write,
    WriteHalf,
}

/// Random traffic until everything is done: whether every request is answered, and reads see what was acknowledged.
fn random_traffic(
    config: &SwitchConfig,
    scheme: Scheme,
    credits: u16,
    deeds: &[Vec<Deed>],
) -> Result<(), TestCaseError> {
    const HOSTS: usize = 2;
    let mut bench = Bench::new(config, HOSTS as u16, 2, credits, Role::Persistent(scheme));
    bench.devices_answer_after(30);
    // Chain number n belongs to host n modulo 2 and line n / 2 of the device number n / 2 modulo 2; its tag is n.
    let line = |chain: usize| line_of(chain as u64 / 2 % 2, chain as u64);
    let mut done = vec![0; deeds.len()];
    let mut newest = vec![0u64; deeds.len()];
    let mut seen = 0;
    let send_next = |bench: &mut Bench, chain: usize, done: &[usize], newest: &mut [u64]| {
        let Some(deed) = deeds[chain].get(done[chain]) else { return };
        let (tag, now) = (chain as u32, bench.now.as_ps());
        let message = match deed {
            Deed::Read => read(line(chain), tag, now),
            Deed::Write => write(line(chain), newest[chain] + 1, tag, now),
            Deed::WriteHalf => partial_write(line(chain), newest[chain] + 1, 0xFFFF_FFFF, tag, now),
        };
        newest[chain] += u64::from(message.is_write());
        bench.send((chain % HOSTS) as u16, message);
    };
    for chain in 0..deeds.len() {
        send_next(&mut bench, chain, &done, &mut newest);
    }
    while !bench.queue.is_empty() {
        bench.one_event();
        while let Some(got) = bench.got.get(seen).cloned() {
            seen += 1;
            if usize::from(got.by) < HOSTS {
                let chain = got.message.tag.0 as usize;
                prop_assert_eq!(chain % HOSTS, usize::from(got.by), "an answer went to the wrong host");
                prop_assert_eq!(got.message.stack.total(), Time::from_ps(got.ps).since(got.message.stack.start()));
                prop_assert_eq!(got.message.version, Version(newest[chain]), "what was written last");
                done[chain] += 1;
                send_next(&mut bench, chain, &done, &mut newest);
            }
        }
    }
    for (chain, deeds) in deeds.iter().enumerate() {
        prop_assert_eq!(done[chain], deeds.len(), "{:#?}", bench.switch.waiting());
    }
    prop_assert!(bench.switch.is_idle(), "{:#?}", bench.switch.waiting());
    let in_transmitters: usize =
        bench.neighbours.iter().map(|neighbour| usize::from(!neighbour.transmitter.is_idle())).sum();
    prop_assert_eq!(in_transmitters, 0, "every credit comes back");
    Ok(())
}

fn any_deeds() -> impl Strategy<Value = Vec<Vec<Deed>>> {
    let deed = prop_oneof![2 => Just(Deed::Read), 4 => Just(Deed::Write), 1 => Just(Deed::WriteHalf)];
    prop::collection::vec(prop::collection::vec(deed, 0..12), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_smallest_buffers_never_deadlock_and_reads_see_the_last_write(
        deeds in any_deeds(), entries in 1..6u16, input in 1..3u16, acknowledgements in 1..3u16, output in 1..3u16,
        credits in 1..4u16, threshold in 0.0..=1.0f64, preset in 0.0..=1.0f64, stage in 0..3u8, crossbar in 0..3u8,
        scheme in prop::sample::select(Scheme::ALL.to_vec()), reads_bypass in any::<bool>(),
    ) {
        let config = SwitchConfig {
            pipeline_stage_ns: f64::from(stage),
            crossbar_flit_ns: f64::from(crossbar) * 0.7,
            persist_buffer: Some(PersistBufferConfig {
                entries,
                tag_access_ns: 0.388,
                data_access_ns: 0.785,
                service_ns: 0.0,
                reads_bypass,
                input_entries: input,
                input_acknowledgement_entries: acknowledgements,
                output_entries: output,
                drain_threshold: threshold,
                drain_preset: threshold * preset,
            }),
        };
        random_traffic(&config, scheme, credits, &deeds)?;
    }
}
