//! Rates of streams that share links and devices: each keeps so many bytes under way, and what does not fit through a
//! link or a device waits there in the order of arrival.
//!
//! So a stream moves what it has under way, over the time that a line takes: that of the empty fabric and the waits on
//! its way. A resource has a wait only where it is full, and then the one with which it carries exactly what it can.

/// A part of what a stream moves that goes one way.
#[derive(Clone, Debug)]
pub struct Leg {
    /// Of the stream's lines, so many; a line that is read before it is written goes two ways.
    pub part: f64,
    /// The resources on it.
    pub path: Vec<usize>,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Bytes that it has under way while it runs.
    pub under_way: f64,
    /// What a line takes in the empty fabric, in ns; of all ways, each by its part.
    pub line_ns: f64,
    /// The most that it asks for, in bytes a ns.
    pub rate_max: f64,
    /// The part of the time that it runs.
    pub running: f64,
    /// Its ways.
    pub legs: Vec<Leg>,
    /// What it moves now, in bytes a ns.
    pub rate: f64,
}

/// Something that carries so many bytes and no more.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// Bytes a ns.
    pub capacity: f64,
    /// What a line waits there, in ns.
    pub wait_ns: f64,
    /// The streams that use it, with the part of their lines.
    users: Vec<(usize, f64)>,
}

impl Pipe {
    /// Lines that wait there.
    pub fn queued_bytes(&self) -> f64 {
        self.wait_ns * self.capacity
    }
}

/// Streams and what they share.
#[derive(Clone, Debug)]
pub struct Network {
    /// By number.
    pub flows: Vec<Flow>,
    /// By number.
    pub pipes: Vec<Pipe>,
    /// Pipes that all of their users could fill together.
    shared: Vec<usize>,
    /// What a line of each stream takes with the present waits, in ns.
    line_ns: Vec<f64>,
}

/// Loads are right to this part; rates are then right to less than what single requests make of it.
const EXACT: f64 = 1e-4;
/// Waits of one pipe move those of others; with so many rounds trees of any depth that there is have settled.
const ROUNDS_MAX: usize = 200;

impl Network {
    /// These streams over pipes of these capacities.
    pub fn new(flows: Vec<Flow>, capacities: &[f64]) -> Network {
        let pipe = |&capacity: &f64| Pipe { capacity, wait_ns: 0.0, users: Vec::new() };
        let mut pipes: Vec<Pipe> = capacities.iter().map(pipe).collect();
        for (number, flow) in flows.iter().enumerate() {
            for leg in &flow.legs {
                for &pipe in &leg.path {
                    match pipes[pipe].users.last_mut() {
                        Some((last, part)) if *last == number => *part += leg.part,
                        _ => pipes[pipe].users.push((number, leg.part)),
                    }
                }
            }
        }
        let line_ns = flows.iter().map(|flow| flow.line_ns).collect();
        let mut network = Network { flows, pipes, shared: Vec::new(), line_ns };
        network.find_shared();
        network
    }

    /// Changes what a pipe carries.
    pub fn set_capacity(&mut self, pipe: usize, capacity: f64) {
        self.pipes[pipe].capacity = capacity;
        self.wait(pipe, 0.0);
        self.find_shared();
    }

    fn find_shared(&mut self) {
        let most = |(flow, part): &(usize, f64)| {
            let flow = &self.flows[*flow];
            part * flow.rate_max.min(flow.under_way / flow.line_ns)
        };
        let fills = |pipe: &Pipe| pipe.users.iter().map(most).sum::<f64>() > pipe.capacity;
        self.shared = (0..self.pipes.len()).filter(|pipe| fills(&self.pipes[*pipe])).collect();
    }

    /// Finds the waits, and with them the rates.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut has_moved = false;
            for at in 0..self.shared.len() {
                has_moved |= self.settle_pipe(self.shared[at]);
            }
            if !has_moved {
                break;
            }
        }
        for flow in 0..self.flows.len() {
            self.flows[flow].rate = self.rate(flow).0;
        }
    }

    /// What goes through a pipe, in bytes a ns.
    pub fn load(&self, pipe: usize) -> f64 {
        self.pipes[pipe].users.iter().map(|(flow, part)| part * self.flows[*flow].rate).sum()
    }

    /// What a line of a stream takes now, in ns.
    pub fn line_ns(&self, flow: usize) -> f64 {
        self.line_ns[flow]
    }

    /// Lets lines wait so long at a pipe.
    fn wait(&mut self, pipe: usize, wait_ns: f64) {
        let pipe = &mut self.pipes[pipe];
        let more = wait_ns - pipe.wait_ns;
        pipe.wait_ns = wait_ns;
        for &(flow, part) in &pipe.users {
            self.line_ns[flow] += part * more;
        }
    }

    /// What a stream moves with the present waits, and by how much less with a ns more of a wait that all of its lines
    /// have.
    fn rate(&self, flow: usize) -> (f64, f64) {
        // Sums of waits that come and go are right to a rounding.
        let line_ns = self.line_ns[flow].max(self.flows[flow].line_ns);
        let flow = &self.flows[flow];
        let rate = flow.under_way / line_ns;
        let (rate, less) = if rate > flow.rate_max { (flow.rate_max, 0.0) } else { (rate, rate / line_ns) };
        (flow.running * rate, flow.running * less)
    }

    /// The wait with which one pipe carries what it can, the others' being as they are; whether it had to move.
    fn settle_pipe(&mut self, pipe: usize) -> bool {
        let mut has_moved = false;
        // The load falls with the wait. Newton's steps are kept between a wait that is too short and one that is too
        // long: where streams begin to get less than they ask for, the load has kinks.
        let (mut short, mut long) = (0.0, f64::INFINITY);
        loop {
            let (mut load, mut slope) = (0.0, 0.0);
            for &(flow, part) in &self.pipes[pipe].users {
                if self.flows[flow].running == 0.0 {
                    continue;
                }
                let (rate, less) = self.rate(flow);
                load += part * rate;
                slope += part * part * less;
            }
            let Pipe { capacity, wait_ns, .. } = self.pipes[pipe];
            let excess = load - capacity;
            let is_right = excess.abs() <= EXACT * capacity || (excess < 0.0 && wait_ns == 0.0);
            if is_right {
                return has_moved;
            }
            // Streams that keep to what they ask for do not ask for less with a wait, until it is long enough.
            let step = if slope > 0.0 { excess / slope } else { wait_ns.max(1.0) * excess.signum() };
            *(if excess > 0.0 { &mut short } else { &mut long }) = wait_ns;
            let next = wait_ns + step;
            let is_between = next > short && next < long || next <= 0.0 && short == 0.0;
            self.wait(pipe, if is_between { next.max(0.0) } else { (short + long) / 2.0 });
            has_moved = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(under_way: f64, line_ns: f64, path: &[usize]) -> Flow {
        let legs = vec![Leg { part: 1.0, path: path.to_vec() }];
        Flow { under_way, line_ns, rate_max: f64::INFINITY, running: 1.0, legs, rate: 0.0 }
    }

    fn rates(flows: Vec<Flow>, capacities: &[f64]) -> Vec<f64> {
        let mut network = Network::new(flows, capacities);
        network.settle();
        network.flows.iter().map(|flow| (flow.rate * 100.0).round() / 100.0).collect()
    }

    #[test]
    fn a_pipe_that_is_not_full_has_no_wait() {
        assert_eq!(rates(vec![flow(1000.0, 100.0, &[0])], &[20.0]), [10.0]);
    }

    #[test]
    fn a_full_pipe_is_shared_by_what_is_under_way() {
        // Both lines take 220 ns then.
        assert_eq!(rates(vec![flow(3000.0, 100.0, &[0]), flow(1000.0, 100.0, &[0])], &[20.0]), [15.0, 5.0]);
    }

    #[test]
    fn who_is_nearer_gets_more() {
        // A wait of 100 ns: 3000 / 200 and 1000 / 200.
        assert_eq!(rates(vec![flow(3000.0, 100.0, &[0]), flow(1500.0, 200.0, &[0])], &[20.0]), [15.0, 5.0]);
    }

    #[test]
    fn each_of_two_full_pipes_has_its_wait() {
        let flows = vec![flow(1000.0, 100.0, &[0, 1]), flow(1000.0, 100.0, &[0]), flow(5000.0, 100.0, &[1])];
        let mut network = Network::new(flows, &[12.0, 20.0]);
        network.settle();
        assert!((network.load(0) - 12.0).abs() < 0.01 && (network.load(1) - 20.0).abs() < 0.01, "{network:?}");
        assert!(network.flows[0].rate < network.flows[1].rate);
    }

    #[test]
    fn who_asks_for_less_keeps_it_and_who_stands_still_has_nothing() {
        let slow = Flow { rate_max: 2.0, ..flow(1000.0, 100.0, &[0]) };
        let still = Flow { running: 0.0, ..flow(1000.0, 100.0, &[0]) };
        assert_eq!(rates(vec![slow, still, flow(4000.0, 100.0, &[0])], &[20.0]), [2.0, 0.0, 18.0]);
    }

    #[test]
    fn pipes_that_only_slow_streams_fill_carry_what_they_can() {
        let slow = Flow { rate_max: 8.0, ..flow(1000.0, 100.0, &[0]) };
        assert_eq!(rates(vec![slow.clone(), slow], &[10.0]), [5.0, 5.0]);
    }
}
