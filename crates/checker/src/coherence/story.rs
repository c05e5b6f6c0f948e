//! A counterexample in words: what happens, and what everyone has then.

use fencepost_sim::device::type2::host_side::{Access, Holds, LastLevel, Requester};
use fencepost_sim::device::type2::messages::{CacheState, Response};

use super::expand::Expander;
use super::model::{Action, Model, What};
use super::world::{Fresh, Line, World};
use crate::exploration::Counterexample;

/// The steps of a counterexample, in words. Devices, cores and lines keep their numbers from step to step.
pub fn tell<const K: usize>(model: &Model, expander: &Expander<'_>, counterexample: &Counterexample<K>) -> Vec<String> {
    let mut world = World::initial();
    let mut steps = Vec::new();
    for words in &counterexample.states[1..] {
        let mut found: Option<(Action, World)> = None;
        model.each_action(&world, &mut |action| {
            let next = model.apply(&world, action).next;
            if found.is_none() && expander.packer().pack::<K>(&next) == *words {
                found = Some((action, next));
            }
        });
        let (action, next) = found.expect("each state of a way comes from the one before");
        steps.push(format!("{}\n{}", said(model, &world, action), shown(model, &next.lines[action.line])));
        world = next;
    }
    steps
}

/// What is done.
fn said(model: &Model, world: &World, action: Action) -> String {
    let line = &world.lines[action.line];
    let channels = |device: usize| line.devices[device].channels;
    let said = match action.what {
        What::Request(device, request) => format!("device {device} requests {request:?}"),
        What::Store(device) => format!("device {device} writes its own copy"),
        What::Drop(device) => format!("device {device} drops its clean copy"),
        What::Access(core, access) => format!("core {core} waits for a {}", access_name(access)),
        What::CoreStore(core) => format!("core {core} writes its own copy"),
        What::CoreEvict(core) => format!("core {core} evicts its copy"),
        What::LastLevelEvict => "the host's last-level cache evicts the line".to_owned(),
        What::ServeDevice(device, _) => {
            let request = line.devices[device].line.transaction.map(|transaction| transaction.request);
            let request = request.map_or_else(String::new, |request| format!("{request:?} "));
            format!("the host takes {request}of device {device}")
        }
        What::ServeCore(core) => {
            let access = line.host.cores[core].access.map_or("access", access_name);
            format!("the host begins the {access} of core {core}")
        }
        What::Snooped(device, _) => {
            let snoop = channels(device).snoop.map_or_else(String::new, |snoop| format!("{snoop:?}"));
            format!("{snoop} reaches device {device}, which answers")
        }
        What::Response(device) => {
            format!("{} reaches device {device}", channels(device).response.map_or_else(String::new, response_name))
        }
        What::Data(device) => format!("data reach device {device}"),
        What::SnoopResponse(device) => {
            let response = channels(device).snoop_response.map_or_else(String::new, |said| format!("{said:?}"));
            format!("{response} of device {device} reaches the host")
        }
        What::SnoopedData(device) => format!("the snooped data of device {device} reach the host"),
        What::Pulled(device) => {
            let is_bogus = channels(device).pulled.is_some_and(|pulled| pulled.is_bogus);
            format!("the {}data pulled from device {device} reach the host", if is_bogus { "bogus " } else { "" })
        }
    };
    if model.sizes()[2] > 1 { format!("line {}: {said}", action.line) } else { said }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Load => "load",
        Access::Store => "store",
        Access::Flush => "flush",
        Access::WriteAround => "non-temporal store",
    }
}

fn response_name(response: Response) -> String {
    match response {
        Response::Go(state) => format!("GO-{}", state.letter()),
        Response::WritePull => "WritePull".to_owned(),
        Response::GoWritePull => "GO_WritePull".to_owned(),
        Response::GoWritePullDrop => "GO_WritePull_Drop".to_owned(),
        Response::FastGoWritePull => "Fast_GO_WritePull".to_owned(),
        Response::ExtCmp => "ExtCmp".to_owned(),
    }
}

/// What everyone has of a line, and what is on its way.
fn shown(model: &Model, line: &Line) -> String {
    let [devices, cores, _] = model.sizes();
    let copy = |state: CacheState, data: Fresh| match state {
        CacheState::Invalid => "I".to_owned(),
        _ => format!("{}{}", state.letter(), age(data)),
    };
    let mut parts = Vec::new();
    for (number, device) in line.devices[..devices].iter().enumerate() {
        let waits = device.line.transaction.map(|transaction| format!(", waits: {:?}", transaction.request));
        let known = match line.host.devices[number].holds {
            Holds::Nothing => "",
            Holds::Shared => ", in the directory as sharer",
            Holds::Owner => ", in the directory as owner",
        };
        let state = copy(device.line.state, device.line.data);
        parts.push(format!("device {number} {state}{}{known}", waits.unwrap_or_default()));
    }
    for (number, core) in line.host.cores[..cores].iter().enumerate() {
        let waits = core.access.map(|access| format!(", waits: {}", access_name(access)));
        parts.push(format!("core {number} {}{}", copy(core.state, core.data), waits.unwrap_or_default()));
    }
    parts.push(match line.host.last_level {
        LastLevel::Nothing => "LLC nothing".to_owned(),
        LastLevel::Clean(data) => format!("LLC clean{}", age(data)),
        LastLevel::Dirty(data) => format!("LLC dirty{}", age(data)),
    });
    parts.push(format!("memory{}", if line.host.memory == Fresh::NEWEST { " newest" } else { age(line.host.memory) }));
    if let Some(service) = line.host.service {
        parts.push(match service.requester {
            Requester::Device(device, request) => format!("serving {request:?} of device {device}"),
            Requester::Core(core, access) => format!("serving the {} of core {core}", access_name(access)),
        });
    }
    format!("[{}]", parts.join("; "))
}

/// Whether data are the newest.
fn age(data: Fresh) -> &'static str {
    match data.0 {
        3 => "",
        0 => " stale",
        _ => " stale in part",
    }
}
