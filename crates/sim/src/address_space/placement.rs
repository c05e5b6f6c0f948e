//! Rules that place parts of a program on memory nodes, as a person writes them: `heap=pool`, `stack=dram0`,
//! `file:*.pool=pm0`, `range:0x1000-0x2000=dram0/pool:interleave=3/1`, `all=pool:preferred=64M`.

use std::fmt;
use std::str::FromStr;

use super::node::{MemoryNode, NodeId};
use crate::address_space::page_table::PAGE_SHIFT;
use crate::nearest::there_is_no;
use fencepost_kernel::address_map::PM_BASE;
use fencepost_record::{AddressRange, AddressRanges, MemoryMap, PmSelector};

/// Which part of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `heap`, `file:PATTERN` or `range:LO-HI`.
    Selected(PmSelector),
    /// `stack`: the stacks of all threads.
    Stack,
    /// `data`: what the executable and libraries have to write to.
    Data,
    /// `all`: everything that no other rule means.
    All,
}

/// How pages are dealt out to the nodes of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// All of them to the first node; a program that needs more than it has is refused.
    Bind,
    /// In turn, each node so many pages at a time (Linux calls it weighted interleave).
    Interleave(Vec<u32>),
    /// So many bytes to the first node, the rest to the next ones as long as they have room.
    Preferred(u64),
    /// Each page to the node of the socket that touches it first, as long as that has room: the first node is that of
    /// the first socket.
    FirstTouch,
}

/// What gave a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The option `--place`.
    PlaceOption,
    /// The option `--pm`, which names the part only.
    PmOption,
    /// The table `[placement]` of the machine.
    Machine,
}

/// Where a part of a program is to lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What gave it.
    pub origin: RuleOrigin,
    /// Which part.
    pub part: Part,
    /// The names of nodes, the first one first.
    pub nodes: Vec<String>,
    /// How they share it.
    pub policy: Policy,
}

/// What is wrong with rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {problem}")]
pub struct PlacementError {
    /// The rule, as its user gave it: [`Rule::as_given`].
    pub rule: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        match text {
            "stack" => Ok(Part::Stack),
            "data" => Ok(Part::Data),
            "all" => Ok(Part::All),
            "heap" => Ok(Part::Selected(PmSelector::Heap)),
            _ if text.starts_with("file:") || text.starts_with("range:") => {
                text.parse().map(Part::Selected).map_err(|error: fencepost_record::SelectorError| error.problem)
            }
            _ => Err(format!(
                "`{text}` is no part of a program: heap, stack, data, file:PATTERN, range:LO-HI and all are"
            )),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Selected(selector) => selector.fmt(formatter),
            Part::Stack => write!(formatter, "stack"),
            Part::Data => write!(formatter, "data"),
            Part::All => write!(formatter, "all"),
        }
    }
}

impl FromStr for Rule {
    type Err = PlacementError;

    /// Reads what `--place` is given.
    fn from_str(text: &str) -> Result<Rule, PlacementError> {
        let wrong = |problem: String| PlacementError { rule: format!("--place {text}"), problem };
        let (placed, policy) = split_policy(text);
        let policy = policy.map_or(Ok(Policy::Bind), parse_policy).map_err(wrong)?;
        // A pattern may have an equals sign, a node has none.
        let Some((part, nodes)) = placed.rsplit_once('=') else {
            return Err(wrong("it has to be PART=NODE, or PART=NODE:POLICY".to_owned()));
        };
        let part = part.parse().map_err(wrong)?;
        let nodes: Vec<String> = nodes.split('/').map(str::to_owned).collect();
        if nodes.iter().any(String::is_empty) {
            return Err(wrong("a node is missing behind `=`".to_owned()));
        }
        if let Some(twice) = nodes.iter().enumerate().find(|(index, node)| nodes[..*index].contains(node)) {
            return Err(wrong(format!("{} is named twice", twice.1)));
        }
        match &policy {
            Policy::Bind if nodes.len() > 1 => {
                Err(wrong("several nodes need a policy: interleave=W1/W2/… or preferred=SIZE".to_owned()))
            }
            Policy::Interleave(weights) if nodes.len() > weights.len() => {
                Err(wrong(format!("{} nodes need as many weights", nodes.len())))
            }
            _ => Ok(Rule { origin: RuleOrigin::PlaceOption, part, nodes, policy }),
        }
    }
}

/// What stands before the policy, and the policy.
fn split_policy(text: &str) -> (&str, Option<&str>) {
    let names = [":bind", ":interleave", ":preferred", ":first_touch"];
    let begins = names.iter().filter_map(|name| {
        let at = text.rfind(name)?;
        let behind = &text[at + name.len()..];
        (behind.is_empty() || behind.starts_with('=')).then_some(at)
    });
    match begins.max() {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn parse_policy(text: &str) -> Result<Policy, String> {
    match text.split_once('=') {
        None if text == "bind" => Ok(Policy::Bind),
        Some(("interleave", weights)) => {
            let parsed = weights.split('/').map(|weight| weight.parse().ok().filter(|weight| *weight > 0));
            let weights: Option<Vec<u32>> = parsed.collect();
            match weights {
                Some(weights) if weights.len() > 1 => Ok(Policy::Interleave(weights)),
                _ => Err("interleave has a weight of at least 1 for each of two or more nodes, as in interleave=3/1"
                    .to_owned()),
            }
        }
        Some(("preferred", size)) => {
            let bytes = parse_size(size).filter(|bytes| *bytes >= 1 << PAGE_SHIFT);
            bytes.map(Policy::Preferred).ok_or_else(|| {
                format!("preferred has a size of at least one page (4K), as in preferred=64M; `{size}` is none")
            })
        }
        None if text == "first_touch" => Ok(Policy::FirstTouch),
        _ => Err(format!("`{text}` is no policy: bind, interleave=W1/W2/…, preferred=SIZE and first_touch are")),
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, [10, 20, 30]["KMG".find(text.chars().last()?)?]),
        None => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.part, self.nodes.join("/"))?;
        match &self.policy {
            Policy::Bind => Ok(()),
            Policy::Interleave(weights) => {
                let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
                write!(formatter, ":interleave={}", weights.join("/"))
            }
            Policy::Preferred(bytes) => write!(formatter, ":preferred={bytes}"),
            Policy::FirstTouch => write!(formatter, ":first_touch"),
        }
    }
}

impl Rule {
    /// What `--pm SELECTOR` stands for: the part lies in PM, wherever there is room.
    pub fn in_pm(selector: PmSelector) -> Rule {
        let nodes = vec![ALL_PM.to_owned()];
        Rule { origin: RuleOrigin::PmOption, part: Part::Selected(selector), nodes, policy: Policy::Bind }
    }

    /// The rule of the entry `part = "place"` in a machine's table `[placement]`.
    ///
    /// # Errors
    /// If it is none.
    pub fn of_machine(part: &str, place: &str) -> Result<Rule, PlacementError> {
        let rule: Rule = format!("{part}={place}").parse()?;
        Ok(Rule { origin: RuleOrigin::Machine, ..rule })
    }

    /// The option that gave it with its value, or its key in the machine.
    pub fn as_given(&self) -> String {
        match self.origin {
            RuleOrigin::PlaceOption => format!("--place {self}"),
            RuleOrigin::PmOption => format!("--pm {}", self.part),
            RuleOrigin::Machine => format!("placement.{}", self.part),
        }
    }

    fn wrong(&self, problem: String) -> PlacementError {
        PlacementError { rule: self.as_given(), problem }
    }

    /// Whether both place the same part, but not alike.
    fn differs_for_the_part_of(&self, other: &Rule) -> bool {
        self.part == other.part && (&self.nodes, &self.policy) != (&other.nodes, &other.policy)
    }

    /// Whether a host with these nodes can follow it.
    ///
    /// # Errors
    /// If it cannot, with the reason.
    pub fn check(&self, nodes: &[MemoryNode]) -> Result<(), PlacementError> {
        self.place(nodes).map(|_| ())
    }

    /// The nodes that it deals pages out to.
    fn place(&self, nodes: &[MemoryNode]) -> Result<Place, PlacementError> {
        if self.nodes == [ALL_PM] {
            return match self.policy {
                Policy::Bind => Ok(Place::AllPm),
                _ => Err(self.wrong(format!("`{ALL_PM}` is all PM together; a policy chooses among nodes by name"))),
            };
        }
        let mut chosen = Vec::new();
        for name in &self.nodes {
            let found = nodes.iter().position(|node| node.name == *name);
            chosen.push(found.ok_or_else(|| {
                let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                self.wrong(there_is_no("memory node", name, &names))
            })?);
        }
        // Where fewer nodes are named than the policy needs, it goes on with those behind the last one.
        let is_pm = nodes[chosen[0]].is_pm;
        let of_sockets = nodes.iter().filter(|node| !node.is_pm && node.frames.start < PM_BASE).count();
        let wanted = match &self.policy {
            Policy::Bind => 1,
            Policy::Interleave(weights) => weights.len(),
            Policy::Preferred(_) => chosen.len().max(2),
            Policy::FirstTouch if of_sockets < 2 => {
                return Err(
                    self.wrong("first_touch chooses among sockets, and a host of this machine has one".to_owned())
                );
            }
            Policy::FirstTouch => chosen.len().max(of_sockets),
        };
        let behind = chosen[chosen.len() - 1] + 1..nodes.len();
        let more = behind.filter(|&node| nodes[node].is_pm == is_pm).take(wanted.saturating_sub(chosen.len()));
        chosen.extend(more);
        if chosen.len() < wanted {
            let last = &nodes[chosen[chosen.len() - 1]].name;
            return Err(
                self.wrong(format!("it needs {wanted} nodes, and none follows {last} that it could go on with"))
            );
        }
        if let Some(other) = chosen.iter().find(|&&node| nodes[node].is_pm != is_pm) {
            let (first, other) = (&nodes[chosen[0]].name, &nodes[*other].name);
            return Err(
                self.wrong(format!("{first} and {other} are not both PM, so it is undefined what a power cut leaves"))
            );
        }
        let chosen: Vec<NodeId> = chosen.into_iter().map(|node| NodeId(node as u32)).collect();
        Ok(match &self.policy {
            Policy::Bind => Place::Filled { nodes: chosen, first_pages: None },
            Policy::Preferred(bytes) => Place::Filled { nodes: chosen, first_pages: Some(bytes >> PAGE_SHIFT) },
            Policy::FirstTouch => Place::NearToucher { nodes: chosen },
            Policy::Interleave(weights) => {
                Place::InTurn { nodes: chosen.into_iter().zip(weights.iter().copied()).collect() }
            }
        })
    }

    /// Which rules decide where several mean the same address: the more exact one does.
    fn rank(&self) -> u8 {
        match self.part {
            Part::Selected(PmSelector::Range(_)) => 0,
            Part::Selected(PmSelector::File(_)) => 1,
            Part::Data => 2,
            Part::Stack => 3,
            Part::Selected(PmSelector::Heap) => 4,
            Part::All => 5,
        }
    }
}

/// The name of all PM together, whatever its devices are called.
const ALL_PM: &str = "pm";

/// How the pages of a part get their frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In PM, whichever device has room: the first one first.
    AllPm,
    /// In the first node, the first `first_pages` pages only if that is given, then in the next one.
    Filled {
        /// The nodes in their order.
        nodes: Vec<NodeId>,
        /// How many pages the first one takes.
        first_pages: Option<u64>,
    },
    /// So many pages in each node in turn.
    InTurn {
        /// The nodes with their weights.
        nodes: Vec<(NodeId, u32)>,
    },
    /// In the node of the socket that touches the page first, or in the next one that has room.
    NearToucher {
        /// The node of each socket.
        nodes: Vec<NodeId>,
    },
}

impl Place {
    /// In one node.
    pub fn in_node(node: NodeId) -> Place {
        Place::Filled { nodes: vec![node], first_pages: None }
    }

    /// Whether a page's frame depends on nothing but which frames are free.
    fn has_no_state(&self) -> bool {
        matches!(self, Place::AllPm | Place::Filled { first_pages: None, .. })
    }

    /// Whether it is persistent.
    pub fn is_pm(&self, nodes: &[MemoryNode]) -> bool {
        match self {
            Place::AllPm => true,
            Place::Filled { nodes: chosen, .. } | Place::NearToucher { nodes: chosen } => {
                nodes[chosen[0].index()].is_pm
            }
            Place::InTurn { nodes: chosen } => nodes[chosen[0].0.index()].is_pm,
        }
    }
}

/// Where each virtual address of a program lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Addresses, and the number of their place; disjoint and ascending.
    pub regions: Vec<(AddressRange, usize)>,
    /// The places.
    pub places: Vec<Place>,
    /// The number of the place of all other addresses.
    pub elsewhere: usize,
}

impl Placement {
    /// Everything in the host's own DRAM, except these addresses, which are PM.
    pub fn in_dram_and_pm(persistent: &AddressRanges) -> Placement {
        let regions = persistent.as_slice().iter().map(|range| (*range, 1)).collect();
        Placement { regions, places: vec![Place::in_node(NodeId::FIRST), Place::AllPm], elsewhere: 0 }
    }

    /// Whether all of these addresses are PM, on a host with these nodes.
    pub fn is_in_pm(&self, addresses: &AddressRanges, nodes: &[MemoryNode]) -> bool {
        let regions = |is_pm: bool| {
            let chosen = self.regions.iter().filter(|(_, place)| self.places[*place].is_pm(nodes) == is_pm);
            AddressRanges::union(chosen.map(|(range, _)| *range))
        };
        if self.places[self.elsewhere].is_pm(nodes) {
            addresses.without(&regions(false)) == *addresses
        } else {
            addresses.without(&regions(true)).is_empty()
        }
    }

    /// Whether ranges of addresses among `rules`, which mean the same in every program, contradict each other.
    ///
    /// # Errors
    /// If they do, or if one names no node of this machine.
    pub fn check_ranges(rules: &[Rule], nodes: &[MemoryNode]) -> Result<(), PlacementError> {
        let is_range = |rule: &&Rule| matches!(rule.part, Part::Selected(PmSelector::Range(_)));
        let ranges: Vec<Rule> = rules.iter().filter(is_range).cloned().collect();
        Placement::resolve(&ranges, &MemoryMap::default(), nodes).map(drop)
    }

    /// What `rules` say of a program with that memory map, on a host with these nodes; with the rules that mean nothing
    /// of it.
    ///
    /// # Errors
    /// If a rule names no node of this machine, or contradicts another one.
    pub fn resolve<'a>(
        rules: &'a [Rule],
        map: &MemoryMap,
        nodes: &[MemoryNode],
    ) -> Result<(Placement, Vec<&'a Rule>), PlacementError> {
        let mut places = vec![Place::in_node(NodeId::FIRST)];
        let mut elsewhere = 0;
        let mut regions: Vec<(AddressRange, usize, &Rule)> = Vec::new();
        let mut unmatched = Vec::new();
        let mut ranked: Vec<&Rule> = rules.iter().collect();
        ranked.sort_by_key(|rule| rule.rank());
        for (index, rule) in ranked.iter().enumerate() {
            let place = rule.place(nodes)?;
            if let Some(other) = ranked[..index].iter().find(|other| other.differs_for_the_part_of(rule)) {
                return Err(rule.wrong(format!("it contradicts {}", other.as_given())));
            }
            // What has no state of its own can be shared, and neighbours in it are one region.
            let is_shared = |other: &Place| *other == place && place.has_no_state();
            let number = places.iter().position(is_shared).unwrap_or(places.len());
            if number == places.len() {
                places.push(place);
            }
            let meant = match &rule.part {
                Part::All => {
                    elsewhere = number;
                    continue;
                }
                Part::Selected(selector) => map.select(selector),
                Part::Stack => map.stacks(),
                Part::Data => map.data(),
            };
            if meant.is_empty() {
                unmatched.push(*rule);
            }
            let of_rank = |other: &&(AddressRange, usize, &Rule)| other.2.rank() == rule.rank();
            for &(range, other_place, other) in regions.iter().filter(of_rank) {
                let mut overlapping =
                    meant.as_slice().iter().filter(|own| own.start < range.end && range.start < own.end);
                let first = overlapping.next().filter(|_| places[other_place] != places[number]);
                if let Some(own) = first {
                    let (other, from) = (other.as_given(), own.start.max(range.start));
                    return Err(rule.wrong(format!("it contradicts {other}: both mean addresses from {from:#x} on")));
                }
            }
            let taken = AddressRanges::union(regions.iter().map(|(range, ..)| *range));
            regions.extend(meant.without(&taken).as_slice().iter().map(|range| (*range, number, *rule)));
        }
        regions.sort_by_key(|(range, ..)| range.start);
        let mut joined: Vec<(AddressRange, usize)> = Vec::new();
        for (range, place, _) in regions {
            match joined.last_mut().filter(|(last, of)| last.end == range.start && *of == place) {
                Some((last, _)) => last.end = range.end,
                None => joined.push((range, place)),
            }
        }
        Ok((Placement { regions: joined, places, elsewhere }, unmatched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<MemoryNode> {
        let node =
            |name: &str, is_pm, start: u64| MemoryNode { name: name.to_owned(), is_pm, frames: start..start + 4096 };
        vec![node("dram0", false, 0), node("pm0", true, 1 << 40), node("pool", false, 1 << 51)]
    }

    fn resolve(rules: &[&str]) -> Result<Placement, String> {
        let rules: Result<Vec<Rule>, _> = rules.iter().map(|rule| rule.parse()).collect();
        let rules = rules.map_err(|error| error.to_string())?;
        let resolved = Placement::resolve(&rules, &MemoryMap::default(), &nodes());
        resolved.map(|(placement, _)| placement).map_err(|error| error.to_string())
    }

    #[test]
    fn a_message_names_the_option_or_the_key_that_gave_a_rule() {
        let own = |text: &str| text.parse::<Rule>().unwrap();
        let of_machine = |part: &str, place: &str| Rule::of_machine(part, place).unwrap();
        let pm = |text: &str| Rule::in_pm(text.parse().unwrap());
        let cases = [
            (own("heap=dram0"), pm("heap"), "--pm heap: it contradicts --place heap=dram0"),
            (
                of_machine("range:0x1000-0x3000", "pool"),
                own("range:0x2000-0x4000=dram0"),
                "--place range:0x2000-0x4000=dram0: it contradicts placement.range:0x1000-0x3000: \
                 both mean addresses from 0x2000 on",
            ),
            (
                of_machine("range:0x2000-0x4000", "dram0"),
                of_machine("range:0x1000-0x3000", "pool"),
                "placement.range:0x1000-0x3000: it contradicts placement.range:0x2000-0x4000: \
                 both mean addresses from 0x2000 on",
            ),
        ];
        for (first, second, message) in cases {
            let rules = [first, second];
            let resolved = Placement::resolve(&rules, &MemoryMap::default(), &nodes());
            assert_eq!(resolved.unwrap_err().to_string(), message);
        }
        let rules = [of_machine("file:*.log", "pm0"), own("file:*.dat=pm0"), pm("file:*.pool")];
        let (_, unmatched) = Placement::resolve(&rules, &MemoryMap::default(), &nodes()).unwrap();
        let unmatched: Vec<String> = unmatched.into_iter().map(Rule::as_given).collect();
        assert_eq!(unmatched, ["placement.file:*.log", "--place file:*.dat=pm0", "--pm file:*.pool"]);
    }

    #[test]
    fn rules_read_as_they_print() {
        for text in ["heap=pool", "stack=dram0", "file:a=b*.pool=pm0", "range:0x1000-0x2000=dram0/pool:interleave=3/1"]
        {
            assert_eq!(text.parse::<Rule>().map(|rule| rule.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("all=pool:preferred=64M".parse::<Rule>().unwrap().policy, Policy::Preferred(64 << 20));
        assert_eq!("all=pool:bind".parse::<Rule>(), "all=pool".parse());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases: [(&[&str], &str); 13] = [
            (&["heap"], "it has to be PART=NODE"),
            (&["head=pool"], "`head` is no part of a program"),
            (&["heap="], "a node is missing"),
            (&["heap=far"], "there is no memory node `far`; there are: dram0, pm0, pool"),
            (&["heap=dram0/pool"], "several nodes need a policy"),
            (&["heap=dram0/dram0:interleave=1/1"], "dram0 is named twice"),
            (&["heap=dram0:interleave=0/1"], "a weight of at least 1"),
            (&["heap=pool:interleave=1/1"], "it needs 2 nodes, and none follows pool"),
            (&["heap=dram0:preferred=1"], "at least one page"),
            (&["heap=dram0:first_touch"], "first_touch chooses among sockets"),
            (&["heap=dram0/pm0:interleave=1/1"], "dram0 and pm0 are not both PM"),
            (&["heap=pool", "heap=dram0"], "it contradicts --place heap=pool"),
            (&["range:0-0x2000=pool", "range:0x1000-0x3000=dram0"], "both mean addresses from 0x1000 on"),
        ];
        for (rules, problem) in cases {
            let message = resolve(rules).unwrap_err();
            assert!(message.contains(problem), "{rules:?}: {message}");
        }
    }

    #[test]
    fn the_same_rule_twice_and_neighbours_in_one_node_are_one_region() {
        let placement = resolve(&["range:0-0x1000=pool", "range:0x1000-0x2000=pool", "range:0-0x1000=pool"]).unwrap();
        assert_eq!(placement.regions, [(AddressRange { start: 0, end: 0x2000 }, 1)]);
    }
}
