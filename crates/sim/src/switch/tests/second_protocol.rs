//! A second protocol through the switch, beside CXL.mem on the same links: nothing between the endpoints knows its
//! three classes but by what they say of themselves (`message/exchange.rs`).
//!
//! Two hosts above with memory of their own, two devices below, which fetch and swap lines of that memory.

use super::*;
use fencepost_kernel::link::FlitFormat::{Bytes68, Bytes256, LatencyOptimised256};
use fencepost_kernel::message::MessageClass::{ExchangeDrs, ExchangeReq, ExchangeRwd};
use fencepost_kernel::message::exchange::{fetch, fetched, swap};
use fencepost_kernel::message::{Credits, mem};

const HOSTS: u16 = 2;
const DEVICES: u16 = 2;
/// The classes of the other protocol.
const EXCHANGE: [MessageClass; 3] = [ExchangeReq, ExchangeRwd, ExchangeDrs];
/// The ports to the hosts are 0 and 1.
const DEVICE: u16 = HOSTS;
const OTHER_DEVICE: u16 = HOSTS + 1;
/// The switch is its persist point, if it is one of any.
const PERSISTENT: u64 = 64;
const PIPELINE: u64 = 8_000;
/// A message of up to four slots on a link: its flit, and its flight.
const SHORT: u64 = 1_000 + 5_000;
/// One of five slots.
const LONG: u64 = 2_000 + 5_000;

/// What stands at a port: it sends when it is told, takes what comes, and answers requests.
#[derive(Clone)]
struct Endpoint {
    transmitter: Transmitter,
    /// What it sends, by the token of its wake.
    outbox: Vec<Message>,
    /// The classes of which it keeps the places of what came.
    withheld: Vec<MessageClass>,
    /// The classes of those places.
    kept: Vec<MessageClass>,
    answers_after: Option<Duration>,
}

#[derive(Clone)]
struct Wired {
    queue: EventQueue,
    wires: Wires,
    switch: Switch,
    endpoints: Vec<Endpoint>,
    got: Vec<Got>,
    now: Time,
    /// If not 0, places are given back after random times.
    random: u64,
}

/// A wake with this token or a higher one gives a place of the class with that index back.
const GIVES_BACK: u64 = 1 << 32;

fn carrying_both(format: FlitFormat) -> LinkConfig {
    let of_mem = LinkConfig::new(format, f64::from(format.bytes()), 5.0, 4);
    let credits = of_mem.credits.with(ExchangeReq, 3).with(ExchangeRwd, 2).with(ExchangeDrs, 2);
    LinkConfig { credits, ..of_mem }
}

/// A line of a host, or of a device.
fn at(port: u16, line: u64) -> u64 {
    u64::from(port) * 256 * MIB / 64 + line
}

impl Wired {
    fn new(link: &LinkConfig, config: &SwitchConfig, role: Role) -> Wired {
        let direction = |port| if port < HOSTS { PortDirection::Upstream } else { PortDirection::Downstream };
        let ports = 0..HOSTS + DEVICES;
        let descriptions: Vec<PortDescription> =
            ports.clone().map(|port| PortDescription { link: link.clone(), direction: direction(port) }).collect();
        let range = |port: u16| HdmRange::new(at(port, 0) * 64, 256 * MIB, 256, vec![PortId(port)]).unwrap();
        let decoder = HdmDecoder::new(ports.clone().map(range).collect()).unwrap();
        let persist_point = LineAddress(at(0, PERSISTENT))..LineAddress(at(0, PERSISTENT + 1));
        let mut wires = Wires::default();
        ports.clone().for_each(|port| wires.connect((SWITCH, PortId(port)), (component(port), PortId(0))));
        let endpoint = |_| Endpoint {
            transmitter: Transmitter::new(PortId(0), link),
            outbox: Vec::new(),
            withheld: Vec::new(),
            kept: Vec::new(),
            answers_after: None,
        };
        Wired {
            queue: EventQueue::holding_credits(),
            wires,
            switch: Switch::new(config, &descriptions, RoutingTable::new(decoder, vec![persist_point]), role),
            endpoints: ports.map(endpoint).collect(),
            got: Vec::new(),
            now: Time::ZERO,
            random: 0,
        }
    }

    fn volatile(format: FlitFormat) -> Wired {
        Wired::new(&carrying_both(format), &config(16), Role::Volatile)
    }

    /// The endpoint at `port` sends `message` when that starts, as its credits allow.
    fn send(&mut self, port: u16, message: Message) {
        let outbox = &mut self.endpoints[usize::from(port)].outbox;
        outbox.push(message);
        let (time, token) = (outbox[outbox.len() - 1].stack.start(), outbox.len() as u64 - 1);
        self.queue.push(time, component(port), Event::Wake { token });
    }

    fn run_until(&mut self, ps: u64) {
        while self.queue.next_time().is_some_and(|time| time.as_ps() <= ps)
            && let Some((now, target, event)) = self.queue.pop()
        {
            self.now = now;
            let mut context = Context::new(now, target, &mut self.queue, &self.wires);
            match target {
                SWITCH => self.switch.handle(event, &mut context),
                _ => self.endpoint_handles((target.0 - 1) as u16, event),
            }
        }
        self.now = self.now.max(Time::from_ps(ps.min(1 << 50)));
    }

    fn run(&mut self) {
        self.run_until(u64::MAX);
    }

    fn endpoint_handles(&mut self, port: u16, event: Event) {
        let delay = if matches!(event, Event::Arrival { .. }) { self.random_delay() } else { None };
        let mut context = Context::new(self.now, component(port), &mut self.queue, &self.wires);
        let endpoint = &mut self.endpoints[usize::from(port)];
        match event {
            Event::Arrival { message, .. } => {
                let class = message.class();
                self.got.push(Got { ps: self.now.as_ps(), by: port, message: message.clone() });
                match delay {
                    Some(delay) => context.wake_at(self.now + delay, GIVES_BACK + class.index() as u64),
                    None if endpoint.withheld.contains(&class) => endpoint.kept.push(class),
                    None => endpoint.transmitter.return_credit(class, &mut context),
                }
                if let Some(after) = endpoint.answers_after {
                    let version = message.version;
                    endpoint.outbox.push(match message.opcode {
                        Opcode::Fetch | Opcode::Swap => fetched(message, version),
                        Opcode::MemRd | Opcode::MemWr | Opcode::MemWrPtl => message.answer(version),
                        _ => return,
                    });
                    context.wake_at(self.now + after, endpoint.outbox.len() as u64 - 1);
                }
            }
            Event::Credit { class, .. } => endpoint.transmitter.credit_returned(class, &mut context),
            Event::Wake { token } if token >= GIVES_BACK => {
                let class = MessageClass::ALL[(token - GIVES_BACK) as usize];
                endpoint.transmitter.return_credit(class, &mut context);
            }
            Event::Wake { token } => {
                let mut message = endpoint.outbox[token as usize].clone();
                message.stack.charge(Stage::Media, self.now);
                endpoint.transmitter.offer(message, &mut context);
            }
        }
    }

    /// The endpoint at `port` gives one of the places that it kept back at `ps`.
    fn give_back(&mut self, ps: u64, port: u16, class: MessageClass) {
        self.run_until(ps);
        let mut context = Context::new(self.now, component(port), &mut self.queue, &self.wires);
        let endpoint = &mut self.endpoints[usize::from(port)];
        let place = endpoint.kept.iter().position(|kept| *kept == class).expect("it kept one");
        endpoint.kept.remove(place);
        endpoint.transmitter.return_credit(class, &mut context);
    }

    /// When and where messages of `opcode` arrived, with their versions.
    fn arrivals(&self, opcode: Opcode) -> Vec<(u64, u16, u64)> {
        let of_opcode = self.got.iter().filter(|got| got.message.opcode == opcode);
        of_opcode.map(|got| (got.ps, got.by, got.message.version.0)).collect()
    }

    /// Whether every credit is where it began, and nothing is under way.
    fn is_at_rest(&self) -> bool {
        self.switch.is_idle() && self.endpoints.iter().all(|endpoint| endpoint.transmitter.is_idle())
    }

    /// Up to 64 ns, if times are random (xorshift64*).
    fn random_delay(&mut self) -> Option<Duration> {
        (self.random != 0).then(|| {
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            Duration::from_ps(self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 48)
        })
    }
}

fn component(port: u16) -> ComponentId {
    ComponentId(1 + u32::from(port))
}

fn fetch_at(ps: u64, line: u64, version: u32) -> Message {
    Message { version: Version(version.into()), ..fetch(LineAddress(line), Tag(version), Time::from_ps(ps)) }
}

fn swap_at(ps: u64, line: u64, version: u32) -> Message {
    swap(LineAddress(line), Tag(version), Version(version.into()), Time::from_ps(ps))
}

#[test]
fn requests_go_up_by_their_lines_and_answers_down_by_their_tags() {
    let mut wired = Wired::volatile(Bytes68);
    wired.endpoints[0].answers_after = Some(Duration::from_ps(100_000));
    wired.send(DEVICE, fetch_at(0, at(0, 3), 7));
    wired.send(OTHER_DEVICE, swap_at(1_000_000, at(0, 4), 8));
    wired.run();
    let up = SHORT + PIPELINE + SHORT;
    let down = LONG + PIPELINE + LONG;
    assert_eq!(wired.arrivals(Opcode::Fetch), [(up, 0, 7)]);
    assert_eq!(wired.arrivals(Opcode::Swap), [(1_000_000 + up, 0, 8)], "three slots are one flit");
    let answers = [(up + 100_000 + down, DEVICE, 7), (1_000_000 + up + 100_000 + down, OTHER_DEVICE, 8)];
    assert_eq!(wired.arrivals(Opcode::Fetched), answers);
    let tags: Vec<u32> = wired.got.iter().filter(|got| got.by >= DEVICE).map(|got| got.message.tag.0).collect();
    assert_eq!(tags, [7, 8], "each requester knows its answer by its own tag");
    assert!(wired.is_at_rest());
}

#[test]
fn a_message_occupies_the_crossbar_by_its_slots() {
    let slow = SwitchConfig { crossbar_flit_ns: 16.0, ..config(16) };
    let second_crosses_after = |first: Message| {
        let mut wired = Wired::new(&carrying_both(Bytes68), &slow, Role::Volatile);
        wired.send(DEVICE, first);
        wired.send(DEVICE, swap_at(1_000, at(1, 0), 2));
        wired.run();
        wired.arrivals(Opcode::Swap).last().expect("it arrives").0 - (SHORT + PIPELINE + SHORT)
    };
    assert_eq!(second_crosses_after(fetch_at(0, at(0, 0), 1)), 4_000, "one slot");
    assert_eq!(second_crosses_after(swap_at(0, at(0, 0), 1)), 12_000, "three slots");
}

#[test]
fn a_class_whose_places_are_withheld_fills_its_own_buffers_and_no_others() {
    let mut wired = Wired::volatile(Bytes68);
    wired.endpoints[0].withheld = vec![ExchangeRwd];
    for version in 0..6 {
        wired.send(DEVICE, swap_at(0, at(0, 0), version));
    }
    wired.run_until(100_000);
    assert_eq!(wired.arrivals(Opcode::Swap).len(), 2, "the places of the host");
    assert_eq!(wired.switch.ports[usize::from(DEVICE)].ingress[ExchangeRwd.index()].len(), 2, "and of the switch");
    assert_eq!(wired.endpoints[usize::from(DEVICE)].transmitter.waiting(ExchangeRwd), 2);
    let waiting = "port 2: 2 exchange_rwd, the first (0x0) waits for a credit at port 0";
    assert_eq!(wired.switch.waiting()[0], waiting);

    // All others take the time that they take on idle links.
    wired.send(DEVICE, fetch_at(100_000, at(0, 1), 10));
    wired.send(1, write(at(DEVICE, 0), 11, 0, 100_000));
    wired.send(OTHER_DEVICE, swap_at(150_000, at(1, 0), 12));
    wired.run_until(300_000);
    assert_eq!(wired.arrivals(Opcode::Fetch), [(100_000 + SHORT + PIPELINE + SHORT, 0, 10)]);
    assert_eq!(wired.arrivals(Opcode::MemWr), [(100_000 + LONG + PIPELINE + LONG, DEVICE, 11)]);
    assert_eq!(wired.arrivals(Opcode::Swap)[2..], [(150_000 + SHORT + PIPELINE + SHORT, 1, 12)]);
}

#[test]
fn a_place_that_is_given_back_lets_one_message_of_its_class_move_up_everywhere() {
    let mut wired = Wired::volatile(Bytes68);
    wired.endpoints[0].withheld = vec![ExchangeRwd];
    for version in 0..6 {
        wired.send(DEVICE, swap_at(0, at(0, 0), version));
    }
    // The credit's way to the switch, allocation and traversal, the swap's way.
    let moved_up = SHORT + 4_000 + SHORT;
    for released in 0..4 {
        let ps = 1_000_000 * (released + 1);
        wired.give_back(ps, 0, ExchangeRwd);
        wired.run_until(ps + 500_000);
        let last = *wired.arrivals(Opcode::Swap).last().expect("one moved up");
        assert_eq!(last, (ps + moved_up, 0, released + 2), "in the order in which they were sent");
        let in_switch = wired.switch.ports[usize::from(DEVICE)].ingress[ExchangeRwd.index()].len();
        let at_device = wired.endpoints[usize::from(DEVICE)].transmitter.waiting(ExchangeRwd);
        let left = 3 - released as usize;
        assert_eq!((in_switch, at_device), (left.min(2), left.saturating_sub(2)));
    }
    let stats = wired.switch.stats(wired.now);
    assert_eq!(stats.counter("port0.credit_stalls.exchange_rwd"), 4);
    assert_eq!(stats.counter("port0.credit_stalls.exchange_req"), 0);
    assert_eq!(stats.counter("port2.received.exchange_rwd"), 6);
    (0..2).for_each(|_| wired.give_back(9_000_000, 0, ExchangeRwd));
    wired.run();
    let requesters = wired.switch.outstanding.len();
    wired.switch.outstanding.clear();
    assert_eq!((wired.is_at_rest(), requesters), (true, 6), "credits are all back; nobody has answered");
}

#[test]
fn a_blocked_head_blocks_its_class_at_its_port_and_nothing_else() {
    let mut wired = Wired::volatile(Bytes68);
    wired.endpoints[0].withheld = vec![ExchangeRwd];
    for version in 0..3 {
        wired.send(DEVICE, swap_at(0, at(0, 0), version));
    }
    wired.send(DEVICE, swap_at(50_000, at(1, 0), 3));
    wired.send(DEVICE, fetch_at(60_000, at(1, 0), 4));
    wired.send(OTHER_DEVICE, swap_at(70_000, at(1, 0), 5));
    wired.run_until(500_000);
    let free = SHORT + PIPELINE + SHORT;
    assert_eq!(wired.arrivals(Opcode::Fetch), [(60_000 + free, 1, 4)], "another class");
    assert_eq!(wired.arrivals(Opcode::Swap)[2..], [(70_000 + free, 1, 5)], "another port; the first waits");
    wired.give_back(500_000, 0, ExchangeRwd);
    wired.run();
    // The crossbar's input is free after three slots of the one before.
    let crossed = 500_000 + SHORT + 375;
    assert_eq!(
        wired.arrivals(Opcode::Swap)[3..],
        [(500_000 + SHORT + 4_000 + SHORT, 0, 2), (crossed + 4_000 + SHORT, 1, 3)]
    );
    let ready = 50_000 + SHORT + 4_000;
    assert_eq!(wired.switch.counters().head_of_line_messages, 1);
    assert_eq!(wired.switch.counters().head_of_line_ps, 500_000 + SHORT - ready);
}

#[test]
fn a_persist_buffer_takes_no_part_in_another_protocol() {
    let mut wired = Wired::new(&carrying_both(Bytes68), &config(16), Role::Persistent(Scheme::PbRf));
    let line = at(0, PERSISTENT);
    wired.send(1, write(line, 1, 0, 0));
    wired.run();
    assert_eq!(wired.arrivals(Opcode::Cmp).len(), 1, "the buffer holds the line");
    wired.got.clear();
    wired.send(DEVICE, fetch_at(1_000_000, line, 2));
    wired.send(OTHER_DEVICE, swap_at(2_000_000, line, 3));
    wired.run();
    let way = SHORT + PIPELINE + SHORT;
    assert_eq!(wired.arrivals(Opcode::Fetch), [(1_000_000 + way, 0, 2)], "it is not answered from the buffer");
    assert_eq!(wired.arrivals(Opcode::Swap), [(2_000_000 + way, 0, 3)], "nor taken by it");
    let buffer = wired.switch.persist_buffer().expect("it has one").counters();
    assert_eq!((buffer.writes, buffer.reads), (1, 0));
    assert_eq!(wired.switch.durable_version(LineAddress(line)), Some(Version(1)));
}

const EACH: u32 = 150;

/// Both protocols from all ends at once, places given back after random times: each device asks each host, and each
/// host reads and writes each device. Of what one end sends, even versions go to one of the two ends on the other side,
/// odd ones to the other.
fn under_load(link: &LinkConfig, queue: EventQueue) -> Wired {
    let mut wired = Wired { queue, random: 0x9E37_79B9_7F4A_7C15, ..Wired::new(link, &config(16), Role::Volatile) };
    wired.endpoints.iter_mut().for_each(|endpoint| endpoint.answers_after = Some(Duration::from_ps(30_000)));
    for version in 0..EACH {
        for host in 0..HOSTS {
            let (device, ps) = (HOSTS + host, u64::from(version) * 700);
            let above = at((host + version as u16) % HOSTS, 0);
            let below = at(HOSTS + (host + version as u16) % DEVICES, 0);
            wired.send(device, fetch_at(ps, above, version));
            wired.send(device, swap_at(ps, above, version));
            wired.send(host, Message { version: Version(version.into()), ..read(below, version, ps) });
            wired.send(host, write(below, version.into(), version, ps));
        }
    }
    wired.run();
    wired
}

/// Links of each kind, with and without errors.
fn links() -> impl Iterator<Item = LinkConfig> {
    let formats = [Bytes68, Bytes256, LatencyOptimised256].into_iter();
    formats.flat_map(|format| [0.0, 2e-4].map(|bit_error_rate| LinkConfig { bit_error_rate, ..carrying_both(format) }))
}

#[test]
fn under_load_nothing_of_either_protocol_is_lost_or_overtaken() {
    for link in links() {
        let wired = under_load(&link, EventQueue::holding_credits());
        assert!(wired.is_at_rest(), "{link:?}: {:?}", wired.switch.waiting());
        let arrived = |opcode| wired.arrivals(opcode).len() as u32;
        for opcode in [Opcode::Fetch, Opcode::Swap, Opcode::MemRd, Opcode::MemWr, Opcode::MemData, Opcode::Cmp] {
            assert_eq!(arrived(opcode), 2 * EACH, "{link:?}: {opcode:?}");
        }
        assert_eq!(arrived(Opcode::Fetched), 4 * EACH, "{link:?}");
        for opcode in [Opcode::Fetch, Opcode::Swap, Opcode::MemRd, Opcode::MemWr] {
            for (by, parity) in (0..HOSTS + DEVICES).flat_map(|by| [(by, 0), (by, 1)]) {
                let arrivals = wired.arrivals(opcode);
                let from_one = arrivals.iter().filter(|one| one.1 == by && one.2 % 2 == parity).map(|one| one.2);
                assert!(from_one.is_sorted(), "{link:?}: {opcode:?} at {by}");
            }
        }
        let stats = wired.switch.stats(wired.now);
        for class in link.credits.carried().map(MessageClass::name) {
            let stalls = (0..HOSTS + DEVICES).map(|port| stats.counter(&format!("port{port}.credit_stalls.{class}")));
            assert!(stalls.sum::<u64>() > 0, "{link:?}: {class} was never held back");
        }
    }
}

#[test]
fn credits_that_are_no_events_change_nothing_for_either_protocol() {
    for link in links() {
        let [held, as_events] = [EventQueue::holding_credits(), EventQueue::default()].map(|queue| {
            let wired = under_load(&link, queue);
            wired.got.iter().map(|got| (got.ps, got.by, got.message.opcode, got.message.version)).collect::<Vec<_>>()
        });
        assert!(held == as_events, "{link:?}");
    }
}

#[test]
fn only_the_classes_that_a_link_carries_are_in_its_statistics() {
    let names = |link: &LinkConfig| {
        let wired = Wired::new(link, &config(16), Role::Volatile);
        let stats = wired.switch.stats(Time::ZERO);
        MessageClass::ALL.map(|class| {
            let of = |group: &str| stats.get(&format!("port0.{group}.{}", class.name())).is_some();
            (of("received"), of("link.messages"))
        })
    };
    let both = carrying_both(Bytes68);
    let of_mem = LinkConfig { credits: Credits::on_every_link(4), ..carrying_both(Bytes68) };
    assert_eq!(both.credits.carried().count(), mem::CLASSES.len() + EXCHANGE.len());
    assert!(of_mem.credits.carried().eq(mem::CLASSES));
    for link in [both, of_mem] {
        let carried = MessageClass::ALL.map(|class| link.credits.of(class) > 0);
        assert_eq!(names(&link), carried.map(|is_carried| (is_carried, is_carried)));
    }
}
