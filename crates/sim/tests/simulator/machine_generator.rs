//! Machines made by chance: any legal value of any key, small and odd ones above all, and fabrics of many shapes.
//!
//! The keys and their ranges come from the schema of machine files, so that a new key is varied as soon as it exists.
//! Rules that hold between keys are written here once more, so that a generated machine is a legal one.

use fencepost_sim::config::{Machine, json_schema};
use fencepost_sim::device::DramConfig;
use serde_json::{Map, Value as Json, json};

use super::machine::machine;
use super::random::Random;

/// Keys that would only make a test slow if they were as large as they may be.
const CAPS: [(&str, u64); 14] = [
    ("core.count", 6),
    ("branch_predictor.local_bits", 8),
    ("branch_predictor.global_bits", 8),
    ("branch_predictor.target_bits", 8),
    ("branch_predictor.return_stack_entries", 16),
    ("core.rob_entries", 256),
    ("core.issue_queue_entries", 128),
    ("core.load_queue_entries", 128),
    ("core.store_queue_entries", 128),
    ("core.flushes_in_flight", 64),
    ("dram.ranks", 2),
    ("dram.row_bytes", 8192),
    ("pm.banks", 32),
    ("switch.persist_buffer.entries", 40),
];

/// A random machine, by the JSON that it is made from.
pub fn random_machine(random: &mut Random) -> Machine {
    let mut json = machine("pcs-table1", &[]).to_json();
    // How far the machine is from the one that ships: from a few keys to nearly all.
    let turns = random.pick(&[1, 2, 4, 16]);
    let schema = json_schema();
    vary(&mut json, schema, "", turns, random);
    if random.once_in(4) {
        add_sockets(&mut json, random);
    }
    let cores = json["core"]["count"].as_u64().expect("it is a whole number");
    vary_caches(&mut json["cache"], cores, turns, random);
    keep_rules(&mut json, random);
    json["fabric"] = fabric(random);
    if random.once_in(5) {
        add_accelerator(&mut json, random);
    }
    if random.once_in(3) {
        add_expanders(&mut json["fabric"], random);
    }
    if random.once_in(3) {
        override_some(&mut json, random);
    }
    if random.once_in(2)
        && let Some(machine) = with_persist_points(&json, random)
    {
        return machine;
    }
    let text = json.to_string();
    Machine::from_json("random", &text)
        .unwrap_or_else(|errors| panic!("the generated machine is not legal:\n{errors}\n{text}"))
}

/// The same machine with some of its switches as persist points, if they can be.
fn with_persist_points(machine: &Json, random: &mut Random) -> Option<Machine> {
    let mut json = machine.clone();
    let switches = json["fabric"]["switches"].as_array().expect("it is a list");
    let leaves_out = if random.once_in(2) { switches.len() as u64 } else { 0 };
    let points: Vec<Json> =
        switches.iter().filter(|_| leaves_out == 0 || !random.once_in(leaves_out)).cloned().collect();
    json["fabric"]["persist_points"] = json!(points);
    // Programs have frames of their own.
    json["fabric"]["pm_sharing"] = json!("private");
    Machine::from_json("random", &json.to_string()).ok()
}

/// What a reference or an optional value stands for.
fn definition<'a>(schema: &'a Json, mut node: &'a Json) -> &'a Json {
    loop {
        if let Some(reference) = node["$ref"].as_str() {
            node = schema.pointer(&reference[1..]).expect("references point at something");
        } else if let Some(choices) = node["anyOf"].as_array().filter(|_| node["properties"].is_null()) {
            node = choices.iter().find(|choice| choice["type"] != "null").expect("something may stand here");
        } else {
            return node;
        }
    }
}

/// Gives every key of `value` a random value of its range once in `turns` times.
fn vary(value: &mut Json, node: &Json, path: &str, turns: u64, random: &mut Random) {
    let schema = json_schema();
    let node = definition(schema, node);
    if let Json::Object(members) = value {
        for (name, member) in members.iter_mut() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if !matches!(path.as_str(), "fabric" | "cache" | "description") {
                vary(member, &node["properties"][name], &path, turns, random);
            }
        }
        return;
    }
    if !random.once_in(turns) {
        return;
    }
    let words = |choices: &Json| -> Vec<Json> { choices.as_array().cloned().unwrap_or_default() };
    let choices: Vec<Json> = match &node["oneOf"] {
        Json::Array(choices) => choices.iter().map(|choice| choice["const"].clone()).collect(),
        _ => words(&node["enum"]),
    };
    let cap = CAPS.iter().find(|(key, _)| *key == path).map(|(_, cap)| *cap as f64);
    match node["type"].as_str() {
        _ if !choices.is_empty() => *value = choices[random.below(choices.len() as u64) as usize].clone(),
        Some("boolean") => *value = json!(random.once_in(2)),
        Some("integer") => *value = json!(number(value, node, cap, random).round() as u64),
        Some("number") => *value = json!((number(value, node, cap, random) * 1000.0).round() / 1000.0),
        other => panic!("{path}: a key of type {other:?}"),
    }
}

/// A number within its range: a small one, one like the present one, or any.
fn number(value: &Json, node: &Json, cap: Option<f64>, random: &mut Random) -> f64 {
    let bound = |key: &str| node[key].as_f64().unwrap_or_else(|| panic!("a number without a {key}: {node}"));
    let (low, high) = (bound("minimum"), bound("maximum").min(cap.unwrap_or(f64::INFINITY)));
    let present = value.as_f64().expect("it is a number");
    let number = match random.below(8) {
        0..=2 => low + random.below(4) as f64,
        3 | 4 => present * (0.25 + 2.0 * random.fraction()),
        5 => low,
        6 => random.magnitude(low, high.min(present.max(1.0) * 20.0).max(low)),
        _ => random.magnitude(low, high),
    };
    number.clamp(low, high)
}

/// The largest power of two up to `number`.
fn power_of_two(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

/// One, two or three levels below the first, private ones above shared ones, all small.
fn vary_caches(caches: &mut Json, cores: u64, turns: u64, random: &mut Random) {
    let template = caches["l2"].clone();
    let node = &definition(json_schema(), &json_schema()["properties"]["cache"])["additionalProperties"];
    let levels = random.pick(&["l2", "l2", "l2", "l3", "l3", "l4"]);
    // One core has nobody to share with.
    let needs_shared = cores > 1 || !random.once_in(4);
    let (mut are_shared, mut is_upper_shared) = (false, false);
    let mut made = Map::new();
    for name in ["l1i", "l1d", "l2", "l3", "l4"] {
        let mut level = template.clone();
        vary(&mut level, node, "level", turns, random);
        let is_first = name.starts_with("l1");
        are_shared |= needs_shared && !is_first && (name == levels || random.once_in(3));
        level["shared"] = json!(!is_first && are_shared);
        if name == "l1i" || name == levels || level["shared"] == true {
            level["prefetcher"] = json!("none");
        }
        if name == levels {
            // What is not inclusive lies below levels that are private to a core.
            let is_below_private = name != "l2" && level["shared"] == true && !is_upper_shared;
            level["inclusive"] = json!(!is_below_private || random.once_in(2));
            if level["inclusive"] == false {
                let ways = random.pick(&[1, 2, 3, 8]);
                let sets = random.pick(&[1, 2, 3, 16, 100]).max(16_u64.div_ceil(ways));
                level["snoop_filter"] = json!({"entries": ways * sets, "ways": ways});
            }
        }
        is_upper_shared |= level["shared"] == true;
        // 1 KiB is the least that a level can have: 16 lines.
        let size_kib = if is_first { random.pick(&[1, 1, 2, 4]) } else { random.pick(&[1, 1, 2, 4, 16, 64]) };
        level["size_kib"] = json!(size_kib);
        level["ways"] = json!(random.pick(&[1, 2, 4, 8, 16]));
        level["mshrs"] = json!(random.pick(&[1, 1, 2, 3, 8, 32]));
        level["write_buffers"] = json!(random.pick(&[1, 1, 2, 3, 8, 64]));
        made.insert(name.to_owned(), level);
        if name == levels {
            break;
        }
    }
    *caches = Json::Object(made);
}

/// Two or three sockets for each host, with one core or two each.
fn add_sockets(machine: &mut Json, random: &mut Random) {
    let sockets = random.pick(&[2, 2, 3]);
    machine["core"]["count"] = json!(sockets * random.between(1, 2));
    machine["sockets"] = json!({"count": sockets, "memory_directory": random.pick(&[false, true])});
    machine["socket_link"] = json!({
        "bandwidth_gb_per_s": random.pick(&[1.0, 20.0, 200.0]),
        "latency_ns": random.pick(&[0.0, 3.3, 40.0, 500.0]),
        "credits": random.pick(&[1, 2, 16]),
        "to_ports_ns": random.pick(&[0.0, 0.0, 7.0, 300.0]),
    });
}

/// A Type-2 device at the first host, and maybe an expander; programs have data in their memory.
fn add_accelerator(machine: &mut Json, random: &mut Random) {
    let transactions = random.between(1, 4);
    let link = &mut machine["link"];
    for class in ["d2h_request", "d2h_response", "d2h_data", "h2d_request", "h2d_response", "h2d_data"] {
        link[format!("{class}_credits")] = json!(transactions + random.below(3));
    }
    let mut cycles = || random.pick(&[0, 1, 4, 30]);
    machine["type2"] = json!({
        "clock_ghz": 0.4,
        "issue_cycles": 1,
        "generator_cycles": cycles(),
        "lookup_cycles": cycles(),
        "read_cycles": cycles(),
        "fill_cycles": cycles(),
        "port_cycles": cycles(),
        "transactions": transactions,
        "host_memory_cache": {"size_kib": 1, "ways": 2},
        "device_memory_cache": {"size_kib": 1, "ways": 1},
    });
    machine["accelerator"] = json!({"controller_latency_ns": random.pick(&[0.0, 7.0, 90.0])});
    let fabric = &mut machine["fabric"];
    fabric["accelerators"] = json!(["acc0"]);
    fabric["bias"] = json!({"acc0": random.pick(&["host", "device"])});
    let edges = fabric["edges"].as_array_mut().expect("it is a list");
    edges.push(json!(edge("host0", "acc0")));
    if random.once_in(2) {
        edges.push(json!(edge("host0", "expander0")));
        fabric["expanders"] = json!(["expander0"]);
    }
}

/// One or two expanders more, each behind some switch, at one host, or with a port for each host.
fn add_expanders(fabric: &mut Json, random: &mut Random) {
    let listed = |list: &Json| list.as_array().cloned().unwrap_or_default();
    let (hosts, switches, mut expanders) =
        (listed(&fabric["hosts"]), listed(&fabric["switches"]), listed(&fabric["expanders"]));
    for _ in 0..random.between(1, 2) {
        let name = format!("expander{}", expanders.len());
        let above = match random.below(4) {
            0 => vec![hosts[random.below(hosts.len() as u64) as usize].clone()],
            1..=2 if !switches.is_empty() => vec![switches[random.below(switches.len() as u64) as usize].clone()],
            _ => hosts.clone(),
        };
        let edges = fabric["edges"].as_array_mut().expect("it is a list");
        edges.extend(above.iter().map(|from| json!(edge(from.as_str().expect("it is a name"), &name))));
        fabric["expander"][&name] = json!({
            "capacity_mib": 256 * random.between(1, 4), "channels": random.pick(&[1, 2]),
            "controller_latency_ns": random.pick(&[0.0, 7.0, 113.5]),
            "read_queue_entries": random.pick(&[1, 2, 16]),
        });
        expanders.push(json!(name));
    }
    fabric["expanders"] = json!(expanders);
}

/// Mends what cannot stand together.
fn keep_rules(machine: &mut Json, random: &mut Random) {
    let whole = |value: &Json| value.as_u64().expect("it is a whole number");
    let tlb = &mut machine["tlb"];
    let ways = power_of_two(whole(&tlb["ways"]).min(16));
    tlb["ways"] = json!(ways);
    tlb["entries"] = json!(power_of_two(whole(&tlb["entries"]).min(256)).max(ways));
    tlb["walk_cache_ways"] = json!(power_of_two(whole(&tlb["walk_cache_ways"]).min(16)));
    tlb["walk_cache_kib"] = json!(power_of_two(whole(&tlb["walk_cache_kib"]).min(16)));
    let widest = &mut machine["core"]["widest_operation_bytes"];
    *widest = json!(power_of_two(whole(widest)));
    for memory in ["dram", "pm"] {
        let memory = &mut machine[memory];
        let entries = whole(&memory["write_queue_entries"]);
        let high = whole(&memory["write_high_watermark"]).min(entries);
        memory["write_high_watermark"] = json!(high);
        for watermark in ["write_low_watermark", "write_idle_watermark"] {
            memory[watermark] = json!(whole(&memory[watermark]).min(high - 1));
        }
        memory["capacity_mib"] = json!(256 * random.between(1, 8));
    }
    let granule_bytes = &mut machine["core"]["store_sets"]["granule_bytes"];
    *granule_bytes = json!(power_of_two(whole(granule_bytes).min(64)));
    for memory in ["dram", "pm"] {
        let row_bytes = &mut machine[memory]["row_bytes"];
        *row_bytes = json!((whole(row_bytes) / 64 * 64).max(64));
    }
    if random.once_in(4) {
        // So short that long links wait for it.
        machine["link"]["retry_buffer_flits"] = json!(8);
    }
    if random.once_in(4) {
        let pm = &mut machine["pm"];
        pm["block"] = json!({"read_buffer_entries": random.between(1, 8), "translation_ns": random.between(0, 100)});
        pm["row_buffer"] = json!(false);
        pm["handed_over_writes"] = json!(0);
    }
    let dram = &mut machine["dram"];
    dram["channels"] = json!(power_of_two(whole(&dram["channels"])));
    let are_powers = ["bank_groups", "banks_per_group"].iter().all(|key| whole(&dram[*key]).is_power_of_two());
    dram["bank_hash"] = json!(dram["bank_hash"] == json!(true) && are_powers);
    let burst_length = random.pick(&[8, 8, 8, 4, 16, 64]);
    dram["burst_length"] = json!(burst_length);
    dram["channel_bits"] = json!(512 / burst_length);
    let config: DramConfig = serde_json::from_value(dram.clone()).expect("it has every key");
    dram["t_refi_ns"] = json!(config.t_refi_ns.max(config.refresh_interval_ns_min().ceil()));
    let buffer = &mut machine["switch"]["persist_buffer"];
    let threshold = buffer["drain_threshold"].as_f64().expect("it is a number");
    let preset = buffer["drain_preset"].as_f64().expect("it is a number");
    buffer["drain_preset"] = json!(preset.min(threshold));
}

/// The names `stem`0, `stem`1 and so on.
fn names(stem: &str, count: u64) -> Vec<String> {
    (0..count).map(|number| format!("{stem}{number}")).collect()
}

/// Every other device, and the others: an interleaved set can be decoded if its blocks take the ports in turn.
fn in_turn(devices: &[String]) -> [Vec<String>; 2] {
    [0, 1].map(|first| devices.iter().skip(first).step_by(2).cloned().collect())
}

/// One host's fabric, or one that two or three hosts share; several devices are interleaved.
fn fabric(random: &mut Random) -> Json {
    let devices = names("pm", random.pick(&[1, 1, 1, 2, 4]));
    if random.once_in(4) { shared_fabric(&devices, random) } else { own_fabric(&devices, random) }
}

fn edge(from: &str, to: &str) -> String {
    format!("{from} -> {to}")
}

fn to_devices(from: &str, devices: &[String]) -> Vec<String> {
    devices.iter().map(|to| edge(from, to)).collect()
}

/// A chain, a tree, two root ports, or memory without any switch.
fn own_fabric(devices: &[String], random: &mut Random) -> Json {
    let (mut switches, mut edges, mut local_edges) = (0, Vec::new(), Vec::new());
    match random.below(8) {
        0 => local_edges = to_devices("host0", devices),
        1 => edges = to_devices("host0", devices),
        2 if devices.len() > 1 => {
            // A tree: one switch above two others.
            switches = 3;
            edges.extend([edge("host0", "switch0"), edge("switch0", "switch1"), edge("switch0", "switch2")]);
            let [left, right] = in_turn(devices);
            edges.extend(to_devices("switch1", &left));
            edges.extend(to_devices("switch2", &right));
        }
        3 if devices.len() > 1 => {
            // Two root ports, each with a switch.
            switches = 2;
            edges.extend([edge("host0", "switch0"), edge("host0", "switch1")]);
            let [left, right] = in_turn(devices);
            edges.extend(to_devices("switch0", &left));
            edges.extend(to_devices("switch1", &right));
        }
        _ => {
            switches = random.pick(&[1, 1, 1, 2, 4]);
            edges.push(edge("host0", "switch0"));
            edges.extend(chain(0, switches));
            edges.extend(to_devices(&format!("switch{}", switches - 1), devices));
        }
    }
    described(1, switches, devices, edges, local_edges, random)
}

/// So many switches in a row, from number `first` on.
fn chain(first: u64, switches: u64) -> impl Iterator<Item = String> {
    (first + 1..first + switches).map(|to| edge(&format!("switch{}", to - 1), &format!("switch{to}")))
}

/// Two or three hosts with a switch that all share, or with devices that have a port for each.
fn shared_fabric(devices: &[String], random: &mut Random) -> Json {
    let hosts = random.pick(&[2, 2, 3]);
    let switches;
    let mut edges = Vec::new();
    match random.below(5) {
        0 => {
            // A device has a port for each host.
            switches = 0;
            (0..hosts).for_each(|host| edges.extend(to_devices(&format!("host{host}"), devices)));
        }
        1 => {
            // Each host has a switch of its own, and a device has a port for each switch.
            switches = hosts;
            for host in 0..hosts {
                edges.push(edge(&format!("host{host}"), &format!("switch{host}")));
                edges.extend(to_devices(&format!("switch{host}"), devices));
            }
        }
        2 => {
            // Each host has a switch of its own before the one that all share: not the first switch is the persist
            // point, but the last.
            switches = hosts + 1;
            let root = format!("switch{hosts}");
            for host in 0..hosts {
                edges.push(edge(&format!("host{host}"), &format!("switch{host}")));
                edges.push(edge(&format!("switch{host}"), &root));
            }
            edges.extend(to_devices(&root, devices));
        }
        3 if devices.len() > 1 => {
            // The first host passes one switch more than the others, behind which it has a device for itself.
            switches = 2;
            edges.extend([edge("host0", "switch0"), edge("switch0", "switch1"), edge("switch0", &devices[0])]);
            edges.extend((1..hosts).map(|host| edge(&format!("host{host}"), "switch1")));
            edges.extend(to_devices("switch1", &devices[1..]));
            return without_interleaving(hosts, switches, devices, edges);
        }
        _ => {
            switches = random.pick(&[1, 1, 2]);
            edges.extend((0..hosts).map(|host| edge(&format!("host{host}"), "switch0")));
            edges.extend(chain(0, switches));
            edges.extend(to_devices(&format!("switch{}", switches - 1), devices));
        }
    }
    described(hosts, switches, devices, edges, Vec::new(), random)
}

fn without_interleaving(hosts: u64, switches: u64, devices: &[String], edges: Vec<String>) -> Json {
    json!({
        "hosts": names("host", hosts), "switches": names("switch", switches), "devices": devices, "edges": edges,
        "local_edges": [], "interleave": {}, "switch": {}, "link": {}, "pm": {},
    })
}

fn described(
    hosts: u64,
    switches: u64,
    devices: &[String],
    edges: Vec<String>,
    local_edges: Vec<String>,
    random: &mut Random,
) -> Json {
    let mut fabric = without_interleaving(hosts, switches, devices, edges);
    fabric["local_edges"] = json!(local_edges);
    if devices.len() > 1 && !random.once_in(4) {
        let granularity_bytes = random.pick(&[256, 512, 1024, 4096]);
        fabric["interleave"]["all"] = json!({"devices": devices, "granularity_bytes": granularity_bytes});
    }
    fabric
}

/// Makes one link, one switch or one device different from the others of its kind.
fn override_some(machine: &mut Json, random: &mut Random) {
    let fabric = &mut machine["fabric"];
    let mut one_of = |list: &str| {
        let names = fabric[list].as_array().expect("it is a list");
        (!names.is_empty()).then(|| names[random.below(names.len() as u64) as usize].as_str().unwrap().to_owned())
    };
    let (link, switch, device) = (one_of("edges"), one_of("switches"), one_of("devices"));
    if let Some(link) = link {
        fabric["link"][link] = json!({
            "request_credits": random.between(1, 3), "request_with_data_credits": random.between(1, 3),
            "no_data_response_credits": random.between(1, 3), "data_response_credits": random.between(1, 3),
        });
    }
    if let Some(switch) = switch {
        fabric["switch"][switch] = json!({
            "persist_buffer": {"entries": random.between(1, 4), "input_entries": random.between(1, 2)},
        });
    }
    if let Some(device) = device {
        fabric["pm"][device] = json!({"banks": random.between(1, 3), "write_ns": random.between(1, 2000)});
    }
}
