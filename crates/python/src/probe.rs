//! A medium of a machine alone, under a script of requests.

use std::iter;

use fencepost_kernel::line::{ByteMask, LINE_BYTES, LineAddress};
use fencepost_kernel::time::Time;
use fencepost_sim::config::Machine;
use fencepost_sim::device::dram::address::{AddressMap, Place};
use fencepost_sim::device::dram::{BankId, Command};
use fencepost_sim::device::probe::{ProbeOutcome, ProbeRequest, probe};
use fencepost_sim::device::{DramConfig, Medium, MediumConfig};
use fencepost_sim::host_bridge::Interleave;
use fencepost_sim::nearest::there_is_no;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::faults::{caught, input};
use crate::machine;

/// What the medium `medium` (`dram`, or the name of a PM device) of `machine` does under `script`, as JSON.
#[pyfunction]
pub fn medium_probe(py: Python<'_>, machine: &str, medium: &str, script: &str) -> PyResult<String> {
    let machine = machine::from_json("the machine", machine)?;
    let config = medium_config(&machine, medium)?;
    let script: Value = serde_json::from_str(script).map_err(input)?;
    let Some(script) = script.as_array() else { return Err(input("a script is a list of requests")) };
    let requests = script.iter().enumerate().map(|(index, request)| {
        read_request(request, &config).map_err(|message| input(format!("request {index} of the script: {message}")))
    });
    let requests: Vec<ProbeRequest> = requests.collect::<PyResult<_>>()?;
    let run = || {
        let interleave = Interleave::none(0).expect("address 0 is aligned");
        let mut medium = Medium::new(&config, interleave);
        let outcome = py.detach(|| probe(&mut medium, &requests));
        let (_, statistics) = medium.stats(outcome.rested);
        Ok(outcome_json(&outcome, &config, statistics.to_json()).to_string())
    };
    caught(|| format!("the probe of {medium}"), run)
}

fn medium_config(machine: &Machine, name: &str) -> PyResult<MediumConfig> {
    if name == "dram" {
        return Ok(MediumConfig::Dram(machine.dram.clone()));
    }
    let topology = machine.topology();
    let devices = topology.devices.iter().zip(0..);
    let found = devices.clone().find(|(device, _)| device.name == name);
    let Some((_, index)) = found else {
        let names: Vec<&str> = iter::once("dram").chain(devices.map(|(device, _)| device.name.as_str())).collect();
        return Err(input(there_is_no("medium", name, &names)));
    };
    let id = fencepost_sim::config::topology::DeviceId(index);
    Ok(topology.device_config(id).clone())
}

/// A request: `at_ps`, `write`, and `line` or, of DRAM, `place` (rank, bank group, bank, row, column); of a write
/// perhaps `bytes`.
fn read_request(request: &Value, config: &MediumConfig) -> Result<ProbeRequest, String> {
    let number = |key: &str| request[key].as_u64().ok_or(format!("`{key}` has to be a number, not {}", request[key]));
    let line = match (&request["place"], config) {
        (Value::Null, _) => number("line")?,
        (_, MediumConfig::Dram(dram) | MediumConfig::BackedDram(dram)) if dram.channels > 1 => {
            return Err("only one channel has places".into());
        }
        (place, MediumConfig::Dram(dram) | MediumConfig::BackedDram(dram)) => {
            let place = read_place(place, dram).ok_or(format!("{place} is no place in this DRAM"))?;
            AddressMap::new(dram).line(place)
        }
        (..) => return Err("only DRAM has places; give a `line`".into()),
    };
    if line >= config.capacity_bytes() / LINE_BYTES {
        return Err(format!("line {line} is beyond the capacity"));
    }
    let bytes = if request["bytes"].is_null() { LINE_BYTES } else { number("bytes")? };
    let mask = match bytes {
        LINE_BYTES => ByteMask::FULL,
        1..LINE_BYTES => ByteMask((1 << bytes) - 1),
        _ => return Err(format!("{bytes} bytes are not 1 to {LINE_BYTES}")),
    };
    let is_write = request["write"].as_bool().ok_or("`write` has to be true or false")?;
    Ok(ProbeRequest { at: Time::from_ps(number("at_ps")?), is_write, line: LineAddress(line), mask })
}

fn read_place(place: &Value, dram: &DramConfig) -> Option<Place> {
    let numbers: Option<Vec<u64>> = place.as_array()?.iter().map(Value::as_u64).collect();
    let [rank, bank_group, bank, row, column] = numbers?[..] else { return None };
    let columns = u64::from(dram.row_bytes) / LINE_BYTES;
    let counts = [dram.ranks.into(), dram.bank_groups.into(), dram.banks_per_group.into(), columns];
    let is_there = [rank, bank_group, bank, column].iter().zip(counts).all(|(number, count): (_, u64)| *number < count);
    is_there.then_some(Place { rank, bank_group, bank, row, column })
}

fn outcome_json(outcome: &ProbeOutcome, config: &MediumConfig, statistics: Value) -> Value {
    let requests = outcome.requests.iter().map(|probed| {
        json!({
            "entered_ps": probed.entered.as_ps(),
            "answered_ps": probed.answered.as_ps(),
            "from_queue": probed.is_from_queue,
        })
    });
    let dram = config.dram();
    let commands = outcome.commands.iter().filter_map(|(at, command)| Some(command_json(*at, *command, dram?)));
    json!({
        "requests": requests.collect::<Vec<_>>(),
        "commands": commands.collect::<Vec<_>>(),
        "rested_ps": outcome.rested.as_ps(),
        "statistics": statistics,
    })
}

/// A command by the name that the standard gives it.
fn command_json(at: Time, command: Command, dram: &DramConfig) -> Value {
    let at_bank = |name: &str, BankId(bank): BankId| {
        let (group, bank) = (bank / dram.banks_per_group, bank % dram.banks_per_group);
        let (rank, group) = (group / dram.bank_groups, group % dram.bank_groups);
        json!({"at_ps": at.as_ps(), "command": name, "rank": rank, "bank_group": group, "bank": bank})
    };
    let at_rank = |name: &str, rank: usize| json!({"at_ps": at.as_ps(), "command": name, "rank": rank});
    match command {
        Command::Activate { bank, .. } => at_bank("ACT", bank),
        Command::Precharge { bank } => at_bank("PRE", bank),
        Command::Read { bank, auto_precharge } => at_bank(if auto_precharge { "RDA" } else { "RD" }, bank),
        Command::Write { bank, auto_precharge } => at_bank(if auto_precharge { "WRA" } else { "WR" }, bank),
        Command::PrechargeAll { rank } => at_rank("PREA", rank),
        Command::Refresh { rank } => at_rank("REF", rank),
    }
}
