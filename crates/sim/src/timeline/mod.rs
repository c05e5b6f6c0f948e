//! A trace of single requests ([`fencepost_kernel::trace`]) as people look at it: tracks with slices, for the Perfetto
//! viewer and as JSON.
//!
//! Each component is a group of tracks: cores, last-level caches and home agents of a host, its bridge, each direction
//! of a link, the ports and the persist buffer of a switch, the queue and the banks of a device. Slices of one track
//! that overlap lie in lanes below each other. A request's slices are joined by a flow; that of a drain goes on from
//! those of the writes that it drains.

mod perfetto;
mod protobuf;

use serde_json::{Value, json};

use crate::host::SocketPlan;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::message::RequestName;
use fencepost_kernel::message::{Cause, Stage};
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::{Doing, Place, Slice, Trace, TracedRequest};
use fencepost_kernel::{ComponentId, PortId, Wires};

/// A trace with the names of what it speaks of.
#[derive(Clone, Debug)]
pub struct Timeline {
    trace: Trace,
    components: Vec<String>,
    wires: Wires,
    /// What lies where in the hosts that have several sockets.
    sockets: Vec<(ComponentId, SocketPlan)>,
}

impl Timeline {
    /// The timeline of `trace`, taken down in a system with these components.
    pub fn new(trace: Trace, components: &[String], wires: &Wires) -> Timeline {
        Timeline { trace, components: components.to_vec(), wires: wires.clone(), sockets: Vec::new() }
    }

    /// The same, in which these hosts have several sockets.
    #[must_use]
    pub fn with_sockets(self, sockets: Vec<(ComponentId, SocketPlan)>) -> Timeline {
        Timeline { sockets, ..self }
    }

    /// What was taken down.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// As a Perfetto trace: a protobuf of `TracePacket`s with `TrackEvent`s. The same timeline gives the same bytes.
    pub fn to_perfetto(&self) -> Vec<u8> {
        perfetto::write(self)
    }

    /// The requests with their slices: of each its `name` (a number), `cause`, `line`, `version`, `core`, `drains`
    /// (names), `completed_ps`, and `slices` in the order of time, each with `component`, `track`, `doing`, `message`,
    /// `from_ps` and `until_ps`.
    pub fn to_json(&self) -> Value {
        let requests = self.trace.requests().iter().zip(1..).map(|(request, name)| {
            let own = |slice: &&Slice| slice.request == RequestName(name);
            let slices = self.trace.slices().iter().filter(own).map(|slice| {
                json!({
                    "component": self.component(slice.component),
                    "track": self.track(slice),
                    "doing": doing(slice, request),
                    "message": slice.message.map(|opcode| format!("{opcode:?}")),
                    "from_ps": slice.from.as_ps(),
                    "until_ps": slice.until.as_ps(),
                })
            });
            json!({
                "name": name,
                "cause": cause(request),
                "line": request.line.byte(),
                "version": request.version.0,
                "component": self.component(request.component),
                "core": request.core,
                "drains": request.drains.iter().map(|name| name.0).collect::<Vec<_>>(),
                "completed_ps": request.completed.map(Time::as_ps),
                "slices": slices.collect::<Vec<_>>(),
            })
        });
        json!({ "requests": requests.collect::<Vec<_>>(), "samples": self.trace.samples().len() })
    }

    fn component(&self, id: ComponentId) -> &str {
        &self.components[id.0 as usize]
    }

    fn plan(&self, host: ComponentId) -> Option<&SocketPlan> {
        self.sockets.iter().find(|(id, _)| *id == host).map(|(_, plan)| plan)
    }

    /// The socket at which a place of a host is, if it has several.
    fn socket_of(&self, host: ComponentId, place: Place) -> Option<usize> {
        let plan = self.plan(host)?;
        match place {
            Place::Socket(socket) => Some(usize::from(socket)),
            Place::Core(core) => Some(usize::from(core) / plan.cores_each),
            _ => None,
        }
    }

    /// The socket to which a link leads that leaves a host by that port, if it is a link between sockets.
    fn socket_behind(&self, host: ComponentId, port: PortId) -> Option<usize> {
        let links = &self.plan(host)?.links;
        links.iter().find(|(own, _)| *own == port).map(|(_, other)| *other)
    }

    /// The track of a slice, within the group of its component.
    fn track(&self, slice: &Slice) -> String {
        match (slice.doing, slice.place) {
            (Doing::Stage(Stage::Core) | Doing::ToCore, Place::Core(core)) => format!("core {core}"),
            (Doing::Stage(Stage::Core) | Doing::ToCore, _) => "cores".to_owned(),
            (Doing::Stage(Stage::Cache), place) => match self.socket_of(slice.component, place) {
                Some(socket) => format!("last-level cache of socket {socket}"),
                None => "last-level cache".to_owned(),
            },
            (Doing::Stage(Stage::HostBridge), Place::Socket(socket)) => format!("home agent of socket {socket}"),
            (Doing::Stage(Stage::HostBridge), _) => "bridge".to_owned(),
            (Doing::Stage(Stage::LinkWait | Stage::Link), Place::Port(port)) => {
                let (peer, _) = self.wires.peer(slice.component, port);
                match self.socket_behind(slice.component, port) {
                    Some(socket) => format!("link to socket {socket}"),
                    None => format!("link to {}", self.component(peer)),
                }
            }
            (Doing::Stage(Stage::PersistBufferWait | Stage::PersistBufferAccess), _) => "persist buffer".to_owned(),
            (Doing::Stage(Stage::SwitchPipeline | Stage::Arbitration), Place::Port(port)) => format!("port {}", port.0),
            (Doing::Stage(Stage::SwitchPipeline | Stage::Arbitration), _) => "persist buffer".to_owned(),
            (Doing::Stage(Stage::Media) | Doing::MediaWrite, Place::Bank(bank)) => format!("bank {bank}"),
            (Doing::Stage(Stage::Media) | Doing::MediaWrite, _) => "medium".to_owned(),
            (Doing::Stage(Stage::DeviceQueue), _) => "queue".to_owned(),
            (Doing::Stage(Stage::LinkWait | Stage::Link), _) => "links".to_owned(),
        }
    }
}

/// What a slice shows of its request.
fn doing(slice: &Slice, request: &TracedRequest) -> &'static str {
    match slice.doing {
        Doing::Stage(Stage::Core) => cause(request),
        Doing::Stage(stage) => Stage::NAMES[stage as usize],
        Doing::ToCore => "to_core",
        Doing::MediaWrite => "media_write",
    }
}

/// Why a request was made, in the words of the results.
fn cause(request: &TracedRequest) -> &'static str {
    if let Some(called) = request.called {
        return called;
    }
    match (request.cause, is_pm(request.line)) {
        (Cause::DemandRead, true) => "llc_read",
        (Cause::DemandRead, false) => "dram_read",
        (Cause::InstructionFetch, _) => "instruction_fetch",
        (Cause::PageWalk, _) => "page_walk",
        (Cause::Prefetch, _) => "prefetch_read",
        (Cause::Flush, true) => "flush",
        (Cause::FlushWithoutPromise, true) => "flush_without_promise",
        (Cause::NonTemporalStore, true) => "non_temporal_store",
        (Cause::Writeback, true) => "writeback",
        (Cause::Flush | Cause::FlushWithoutPromise | Cause::NonTemporalStore | Cause::Writeback, false) => "dram_write",
        (Cause::Drain, _) => "drain",
    }
}
