//! Components that do what none may do, for tests of what is said about it.

use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, Context, Event, HostActivity};

/// What one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Takes what arrives, answers nothing and gives no credit back.
    KeepsEverything,
    /// Wakes itself for ever, each time so much later.
    WakesItself(Duration),
}

/// Takes part in a system in the place of another component.
#[derive(Clone, Debug)]
pub struct Broken {
    fault: Fault,
    is_host: bool,
    events: u64,
    kept: u64,
}

impl Broken {
    /// One with that fault, in the place of a host or of something else.
    pub fn new(fault: Fault, is_host: bool) -> Broken {
        Broken { fault, is_host, events: 0, kept: 0 }
    }

    /// What it has done, if it stands for a host.
    pub fn activity(&self) -> Option<HostActivity> {
        self.is_host.then_some(HostActivity { progress: 0, events: self.events, cores: 0 })
    }
}

impl Component for Broken {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        self.events += 1;
        match (self.fault, event) {
            (Fault::KeepsEverything, Event::Arrival { .. }) => self.kept += 1,
            (Fault::WakesItself(later), Event::Wake { token }) => context.wake_at(context.now() + later, token),
            _ => {}
        }
    }

    fn power_fail(&mut self) {
        self.kept = 0;
    }

    fn recover(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now(), 0);
    }

    fn is_idle(&self) -> bool {
        self.fault == Fault::KeepsEverything && self.kept == 0
    }

    fn waiting(&self) -> Vec<String> {
        match self.fault {
            Fault::KeepsEverything => vec![format!("keeps {} messages for ever", self.kept)],
            Fault::WakesItself(_) => vec!["wakes itself for ever".to_owned()],
        }
    }

    fn stats(&self, _: Time) -> StatsNode {
        StatsNode::group([("events", StatsNode::Counter(self.events))])
    }
}
