//! The component: all streams of one host, at port 0 of its host bridge.

use fencepost_pacing::DevLoadCounts;
use rustc_hash::FxHashMap;

use super::config::StreamConfig;
use super::entries::Entries;
use super::footprint::Footprint;
use super::keys::Keys;
use super::pacing::{Moved, Pacing};
use super::random::Random;
use super::stream::{self, Devices, Shared, Stream, named_by};
use crate::host_bridge::DeviceMap;
use fencepost_kernel::HostActivity;
use fencepost_kernel::line::Version;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, Context, Event};

/// The traffic generator of one host.
#[derive(Clone, Debug)]
pub struct Generator {
    streams: Vec<Stream>,
    shared: Shared,
    /// The keys of a generator alone; those of a system have one register of keys together.
    keys: Keys,
    events: u64,
}

impl Generator {
    /// A generator of these streams, each with its footprint. `cache_latency` is what the caches take of each request,
    /// there and back, and of `last_level_entries` each line holds one until it is answered; streams with equal
    /// configurations go different ways, and so do hosts with different seeds.
    pub fn new(
        streams: &[(StreamConfig, Footprint)],
        cache_latency: Duration,
        last_level_entries: Option<u32>,
        seed: u64,
    ) -> Generator {
        let stream = |(number, (config, footprint)): (usize, &(StreamConfig, Footprint))| {
            Stream::new(number as u32, config, footprint.clone(), Random::of_member(seed, number as u64))
        };
        Generator {
            streams: streams.iter().enumerate().map(stream).collect(),
            shared: Shared {
                cache_latency,
                version: Version(0),
                copies: FxHashMap::default(),
                entries: last_level_entries.map(Entries::new),
                devices: None,
            },
            keys: Keys::default(),
            events: 0,
        }
    }

    /// Lets the streams begin.
    pub fn start(&mut self, context: &mut Context<'_>) {
        self.streams.iter_mut().for_each(|stream| stream.start(context));
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// From now on a transport paces its streams.
    pub fn begin_pacing(&mut self, map: &DeviceMap) {
        self.streams.iter_mut().for_each(|stream| stream.pacing = Some(Box::new(Pacing::new(map.devices))));
        self.shared.devices =
            Some(Box::new(Devices { map: map.clone(), loads: vec![DevLoadCounts::default(); map.devices] }));
    }

    /// Bytes that a stream has moved, by device.
    pub fn moved(&self, stream: usize) -> &[Moved] {
        self.streams[stream].pacing.as_ref().map_or(&[], |pacing| &pacing.moved)
    }

    /// Answers of each device since the last look, by the load that they reported.
    pub fn take_loads(&mut self) -> Vec<DevLoadCounts> {
        let Some(devices) = &mut self.shared.devices else { return Vec::new() };
        let empty = vec![DevLoadCounts::default(); devices.loads.len()];
        std::mem::replace(&mut devices.loads, empty)
    }

    /// Changes how a stream is paced, and lets it do what it may now.
    pub fn pace(
        &mut self,
        stream: usize,
        change: impl FnOnce(&mut Pacing),
        keys: &mut Keys,
        context: &mut Context<'_>,
    ) {
        if let Some(pacing) = &mut self.streams[stream].pacing {
            change(pacing);
        }
        self.streams[stream].go_on(&mut self.shared, keys, context);
    }

    /// How many events it has handled, and what came of them: lines that were sent, and lines that were answered.
    pub fn activity(&self) -> HostActivity {
        let progress = self.streams.iter().map(Stream::progress).sum();
        HostActivity { progress, events: self.events, cores: self.streams.len() as u64 }
    }

    /// Whether every stream has come to the end of its requests.
    pub fn is_finished(&self) -> bool {
        self.streams.iter().all(Stream::is_at_end)
    }
}

impl Generator {
    /// Reacts to one event, where all generators have `keys` in common.
    pub fn handle_with(&mut self, event: Event, keys: &mut Keys, context: &mut Context<'_>) {
        self.events += 1;
        let shared = &mut self.shared;
        match event {
            Event::Arrival { message, .. } => {
                let (stream, request) = named_by(message.tag);
                let next = shared.entries.as_mut().and_then(Entries::hand_on);
                self.streams[stream].line_answered(request, &message, shared, keys, context);
                if let Some(next) = next {
                    self.streams[next.stream as usize].depart(next.request, next.line, shared, context);
                }
            }
            Event::Wake { token } => match (stream::granted_by(token), stream::copied_by(token)) {
                (Some((stream, request)), _) => self.streams[stream].granted(request, shared, keys, context),
                (None, Some(stream)) => {
                    let next = shared.entries.as_mut().and_then(Entries::hand_on);
                    self.streams[stream].copy_answers(shared, keys, context);
                    if let Some(next) = next {
                        self.streams[next.stream as usize].depart(next.request, next.line, shared, context);
                    }
                }
                (None, None) => self.streams[token as usize].wake(shared, keys, context),
            },
            Event::Credit { .. } => unreachable!("the port to the host bridge has no credits"),
        }
    }
}

impl Component for Generator {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        let mut keys = std::mem::take(&mut self.keys);
        self.handle_with(event, &mut keys, context);
        self.keys = keys;
    }

    fn power_fail(&mut self) {
        self.streams.iter_mut().for_each(Stream::power_fail);
        if let Some(entries) = &mut self.shared.entries {
            entries.clear();
        }
    }

    fn is_idle(&self) -> bool {
        self.is_finished()
    }

    fn waiting(&self) -> Vec<String> {
        self.streams.iter().filter_map(Stream::waiting).collect()
    }

    fn stats(&self, _: Time) -> StatsNode {
        StatsNode::group(
            self.streams.iter().enumerate().map(|(number, stream)| (format!("stream{number}"), stream.stats.to_node())),
        )
    }
}
