//! Two ends of a link, flit by flit.

use super::*;
use crate::component::{Context, Wires};
use crate::event::Event;
use crate::id::{ComponentId, PortId};
use crate::line::{ByteMask, LineAddress, Version};
use crate::message::{Cause, Message, MessageClass, Stage, Tag};
use crate::queue::EventQueue;
use crate::time::Time;

mod credits;
mod packing;
mod random;
mod retries;
mod transmission;

const SENDER: ComponentId = ComponentId(0);
const PORT: PortId = PortId(0);

struct Bench {
    queue: EventQueue,
    wires: Wires,
    transmitter: Transmitter,
}

/// A link whose flit takes 1000 ps and whose flight takes 5 ns.
fn link(format: FlitFormat, credits: u16) -> LinkConfig {
    LinkConfig::new(format, f64::from(format.bytes()), 5.0, credits)
}

fn bench(credits: u16) -> Bench {
    bench_of(&link(FlitFormat::Bytes68, credits))
}

fn bench_of(config: &LinkConfig) -> Bench {
    let mut wires = Wires::default();
    wires.connect((SENDER, PORT), (ComponentId(1), PORT));
    Bench { queue: EventQueue::default(), wires, transmitter: Transmitter::new(PORT, config) }
}

impl Bench {
    fn at<R>(&mut self, ps: u64, act: impl FnOnce(&mut Transmitter, &mut Context<'_>) -> R) -> R {
        let mut context = Context::new(Time::from_ps(ps), SENDER, &mut self.queue, &self.wires);
        act(&mut self.transmitter, &mut context)
    }

    fn offer(&mut self, ps: u64, message: Message) {
        self.at(ps, |transmitter, context| transmitter.offer(message, context));
    }

    fn return_credit(&mut self, ps: u64, class: MessageClass) {
        self.at(ps, |transmitter, context| transmitter.return_credit(class, context));
    }

    /// Everything under way, in the order of its arrival; time in ps.
    fn under_way(&mut self) -> Vec<(u64, Event)> {
        std::iter::from_fn(|| self.queue.pop()).map(|(time, _, event)| (time.as_ps(), event)).collect()
    }

    fn arrivals(&mut self) -> Vec<(u64, MessageClass)> {
        let arrival = |(time, event)| match event {
            Event::Arrival { message, .. } => Some((time, Message::class(&message))),
            _ => None,
        };
        self.under_way().into_iter().filter_map(arrival).collect()
    }

    /// When credits arrive.
    fn credits(&mut self) -> Vec<u64> {
        let credit = |(time, event)| matches!(event, Event::Credit { .. }).then_some(time);
        self.under_way().into_iter().filter_map(credit).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        self.transmitter.stats(Time::NEVER).counter(name)
    }
}

fn read(ps: u64) -> Message {
    Message::read(LineAddress(1), Tag(0), Cause::DemandRead, Time::from_ps(ps))
}

fn write(ps: u64) -> Message {
    Message::write(LineAddress(1), Tag(0), Cause::Flush, Version(1), ByteMask::FULL, Time::from_ps(ps))
}

fn partial_write(ps: u64) -> Message {
    Message::write(LineAddress(1), Tag(0), Cause::Flush, Version(1), ByteMask(1), Time::from_ps(ps))
}

fn data(ps: u64) -> Message {
    read(ps).answer(Version(1))
}

fn completion(ps: u64) -> Message {
    write(ps).answer(Version(1))
}
