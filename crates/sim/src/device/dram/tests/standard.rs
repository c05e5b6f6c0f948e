//! Checks a list of commands against the standard, with rules of its own: every pair of commands, by what lies between
//! them, not by gates.
//!
//! Whatever the scheduler and the refresh timer do under random traffic, no pair may come too close.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::channel::{BankId, Command};
use super::*;

/// Cycles of each parameter, derived here from nanoseconds once more.
struct Standard {
    config: DramConfig,
}

impl Standard {
    fn cycles(&self, ns: f64) -> i64 {
        (ns / self.config.t_ck_ns - 0.026).ceil() as i64
    }

    fn group(&self, bank: BankId) -> u16 {
        bank.0 / self.config.banks_per_group
    }

    fn rank(&self, bank: BankId) -> usize {
        usize::from(self.group(bank) / self.config.bank_groups)
    }

    /// The rank that `command` goes to.
    fn rank_of(&self, command: Command) -> usize {
        match command {
            Command::Activate { bank, .. }
            | Command::Precharge { bank }
            | Command::Read { bank, .. }
            | Command::Write { bank, .. } => self.rank(bank),
            Command::PrechargeAll { rank } | Command::Refresh { rank } => rank,
        }
    }

    /// How long a command takes the command bus, if commands compete for it.
    fn command_cycles(&self) -> i64 {
        i64::from(self.config.scheduling == Scheduling::EachCommand)
    }

    /// How far apart `first` and `second` must be at least.
    fn distance(&self, first: Command, second: Command) -> i64 {
        use Command::{Activate, Precharge, PrechargeAll, Read, Refresh, Write};
        let config = &self.config;
        let is_same_rank = self.rank_of(first) == self.rank_of(second);
        let is_same_group = |one, other| self.group(one) == self.group(other);
        let pick = |is_long, long, short| self.cycles(if is_long { long } else { short });
        let burst = i64::from(config.burst_length / 2);
        let (cl, cwl) = (self.cycles(config.t_cl_ns), self.cycles(config.t_cwl_ns));
        let (rest, turn) = (self.cycles(config.t_cs_ns), self.cycles(config.t_rtw_ns));
        let distance = match (first, second) {
            (Activate { bank: one, .. }, Read { bank, .. } | Write { bank, .. }) if one == bank => {
                self.cycles(config.t_rcd_ns)
            }
            (Activate { bank: one, .. }, Precharge { bank }) if one == bank => self.cycles(config.t_ras_ns),
            (Activate { .. }, PrechargeAll { .. }) if is_same_rank => self.cycles(config.t_ras_ns),
            (Activate { bank: one, .. }, Activate { bank, .. }) if one == bank => {
                self.cycles(config.t_ras_ns) + self.cycles(config.t_rp_ns)
            }
            (Activate { bank: one, .. }, Activate { bank, .. }) if is_same_rank => {
                pick(is_same_group(one, bank), config.t_rrd_l_ns, config.t_rrd_s_ns)
            }
            (Precharge { bank: one }, Activate { bank, .. }) if one == bank => self.cycles(config.t_rp_ns),
            (PrechargeAll { .. }, Activate { .. } | Refresh { .. }) if is_same_rank => self.cycles(config.t_rp_ns),
            (Precharge { .. }, Refresh { .. }) if is_same_rank => self.cycles(config.t_rp_ns),
            (Refresh { .. }, Activate { .. } | Refresh { .. }) if is_same_rank => self.cycles(config.t_rfc_ns),
            (Read { bank: one, .. }, Read { bank, .. }) => match is_same_rank {
                true => pick(is_same_group(one, bank), config.t_ccd_l_ns, config.t_ccd_s_ns),
                false => burst + rest,
            },
            (Write { bank: one, .. }, Write { bank, .. }) => match is_same_rank {
                true => pick(is_same_group(one, bank), config.t_ccd_l_ns.max(config.t_ccd_l_wr_ns), config.t_ccd_s_ns),
                false => burst + rest,
            },
            (Write { bank: one, .. }, Read { bank, .. }) => match is_same_rank {
                true => cwl + burst + pick(is_same_group(one, bank), config.t_wtr_l_ns, config.t_wtr_s_ns),
                false => cwl + burst + rest - cl,
            },
            (Read { .. }, Write { .. }) => cl + burst + if is_same_rank { turn } else { turn.max(rest) } - cwl,
            (Read { bank: one, .. }, Precharge { bank }) if one == bank => self.cycles(config.t_rtp_ns),
            (Read { .. }, PrechargeAll { .. }) if is_same_rank => self.cycles(config.t_rtp_ns),
            (Write { bank: one, .. }, Precharge { bank }) if one == bank => cwl + burst + self.cycles(config.t_wr_ns),
            (Write { .. }, PrechargeAll { .. }) if is_same_rank => cwl + burst + self.cycles(config.t_wr_ns),
            (Read { bank: one, auto_precharge: true }, Activate { bank, .. }) if one == bank => {
                self.cycles(config.t_rtp_ns) + self.cycles(config.t_rp_ns)
            }
            (Write { bank: one, auto_precharge: true }, Activate { bank, .. }) if one == bank => {
                cwl + burst + self.cycles(config.t_wr_ns) + self.cycles(config.t_rp_ns)
            }
            (Read { auto_precharge: true, .. }, Refresh { .. }) if is_same_rank => {
                self.cycles(config.t_rtp_ns) + self.cycles(config.t_rp_ns)
            }
            (Write { auto_precharge: true, .. }, Refresh { .. }) if is_same_rank => {
                cwl + burst + self.cycles(config.t_wr_ns) + self.cycles(config.t_rp_ns)
            }
            _ => 0,
        };
        distance.max(self.command_cycles())
    }

    /// Panics with the commands that break a rule.
    fn check(&self, commands: &[(u64, Command)]) {
        let longest = self.cycles(self.config.t_rfc_ns) as u64 + 100;
        for (index, (at, second)) in commands.iter().enumerate() {
            let recent = commands[..index].iter().rev().take_while(|(earlier, _)| earlier + longest >= *at);
            for (earlier, first) in recent {
                let distance = *at as i64 - *earlier as i64;
                let least = self.distance(*first, *second);
                assert!(distance >= least, "{first:?} at {earlier}, {second:?} at {at}: less than {least} apart");
            }
        }
        self.check_activate_window(commands);
        self.check_rows(commands);
        self.check_refreshes(commands);
    }

    fn check_activate_window(&self, commands: &[(u64, Command)]) {
        for rank in 0..usize::from(self.config.ranks) {
            let is_activate = |(_, command): &&(u64, Command)| match command {
                Command::Activate { bank, .. } => self.rank(*bank) == rank,
                _ => false,
            };
            let activates: Vec<_> = commands.iter().filter(is_activate).map(|(at, _)| *at as i64).collect();
            for window in activates.windows(5) {
                assert!(window[4] - window[0] >= self.cycles(self.config.t_faw_ns), "five ACT at {window:?}");
            }
        }
    }

    /// RD and WR find a row open, ACT and REF find none.
    fn check_rows(&self, commands: &[(u64, Command)]) {
        let mut open = HashMap::new();
        for (at, command) in commands {
            match *command {
                Command::Activate { bank, row } => assert_eq!(open.insert(bank, row), None, "ACT at {at}"),
                Command::Precharge { bank } => assert!(open.remove(&bank).is_some(), "PRE at {at}"),
                Command::Read { bank, auto_precharge } | Command::Write { bank, auto_precharge } => {
                    assert!(open.contains_key(&bank), "{command:?} at {at}");
                    if auto_precharge {
                        open.remove(&bank);
                    }
                }
                Command::PrechargeAll { rank } => open.retain(|bank, _| self.rank(*bank) != rank),
                Command::Refresh { rank } => assert!(open.keys().all(|bank| self.rank(*bank) != rank), "REF at {at}"),
            }
        }
    }

    /// How late a refresh can be: rows have to be closed, and before that a conflict of a bank that was just written to
    /// may have been chosen behind another one.
    fn refresh_delay(&self) -> u64 {
        let config = &self.config;
        let (precharge, activate) = (self.cycles(config.t_rp_ns), self.cycles(config.t_rcd_ns));
        let write = self.cycles(config.t_cwl_ns) + i64::from(config.burst_length / 2) + self.cycles(config.t_wr_ns);
        match config.scheduling {
            Scheduling::EachCommand => 100,
            Scheduling::EachRequest => (4 * precharge + 2 * activate + 2 * write) as u64,
        }
    }

    /// Each rank is refreshed once in tREFI, late by no more than [`Self::refresh_delay`].
    fn check_refreshes(&self, commands: &[(u64, Command)]) {
        let interval = self.cycles(self.config.t_refi_ns) as u64;
        let ranks = u64::from(self.config.ranks);
        for rank in 0..ranks {
            let is_refresh =
                |(_, command): &&(u64, Command)| matches!(command, Command::Refresh { rank: of } if *of as u64 == rank);
            for (turn, (at, _)) in commands.iter().filter(is_refresh).enumerate() {
                let due = interval * (rank + 1) / ranks + interval * turn as u64;
                assert!(
                    (due..due + self.refresh_delay()).contains(at),
                    "REF {turn} of rank {rank} was due at {due}, not {at}"
                );
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Traffic {
    config: DramConfig,
    /// Cycles until each request, its line, and whether it writes.
    requests: Vec<(u64, u64, bool)>,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let mapping = prop_oneof![
        Just(AddressMapping::RoRaBaBgCo),
        Just(AddressMapping::RoCoRaBaBg),
        Just(AddressMapping::RoRaBaCoBg)
    ];
    let policy = prop_oneof![Just(PagePolicy::Open), Just(PagePolicy::OpenAdaptive), Just(PagePolicy::Closed)];
    let turns = prop_oneof![Just((WriteTurns::ReadsFirst, 0)), Just((WriteTurns::Batches, 3))];
    let scheduling = prop_oneof![Just(Scheduling::EachCommand), Just(Scheduling::EachRequest)];
    let caps = (1u16..20, prop_oneof![Just(0u16), 1u16..8]);
    let gap = prop_oneof![8 => 0u64..4, 4 => 0u64..60, 1 => 0u64..20_000];
    let line = prop_oneof![0u64..64, 0u64..100_000];
    let requests = prop::collection::vec((gap, line, prop::bool::weighted(0.4)), 1..400);
    let ddr5 = (prop::bool::ANY, prop_oneof![Just(0.0), Just(20.0)]);
    ((mapping, ddr5), policy, turns, 1u16..=2, (scheduling, caps), requests).prop_map(
        |((address_mapping, (bank_hash, t_ccd_l_wr_ns)), page_policy, turns, ranks, (scheduling, caps), requests)| {
            let ((write_turns, write_idle_watermark), (row_hit_cap, row_accesses)) = (turns, caps);
            let config = DramConfig {
                address_mapping,
                bank_hash,
                t_ccd_l_wr_ns,
                page_policy,
                ranks,
                scheduling,
                row_hit_cap,
                row_accesses,
                read_queue_entries: 8,
                write_queue_entries: 8,
                write_high_watermark: 6,
                write_low_watermark: 2,
                write_idle_watermark,
                write_turns,
                requests_per_turn: 2,
                ..ddr4_2400()
            };
            Traffic { config, requests }
        },
    )
}

/// Offers each request when there is room; answers with the commands and completions.
fn play(traffic: &Traffic) -> Bench {
    let mut bench = Bench::new(traffic.config.clone());
    let mut at = Time::ZERO;
    let mut versions = HashMap::new();
    for (gap, line, is_write) in &traffic.requests {
        at += CK * *gap;
        let message = match is_write {
            true => {
                let version = versions.entry(*line).and_modify(|version| *version += 1).or_insert(1);
                write(*line, *version)
            }
            false => read(*line),
        };
        bench.run_before(at);
        while !bench.dram.has_room(&message) {
            at += CK;
            bench.run_before(at);
        }
        bench.offer(at, message);
    }
    bench.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn random_traffic_breaks_no_rule_of_the_standard_and_is_answered_whole(traffic in traffic()) {
        let bench = play(&traffic);
        Standard { config: traffic.config.clone() }.check(&bench.commands());
        prop_assert!(bench.dram.is_idle());
        prop_assert_eq!(bench.completions.len(), traffic.requests.len());
        for completion in &bench.completions {
            let stack = &completion.answer.stack;
            prop_assert_eq!(stack.charged_until(), completion.at);
        }
    }
}

#[test]
fn a_refresh_waits_for_what_was_chosen_before_it_was_due() {
    let config = DramConfig { scheduling: Scheduling::EachRequest, ..ddr4_2400() };
    let mut bench = Bench::new(config.clone());
    for conflict in 0..4 {
        bench.offer(cycles(9364 - 56), write(NEXT_ROW * conflict, 1));
    }
    let commands = bench.finish().commands();
    Standard { config }.check(&commands);
    let refreshed = commands.iter().position(|(_, command)| matches!(command, Command::Refresh { .. })).unwrap();
    let is_write = |(_, command): &&(u64, Command)| matches!(command, Command::Write { .. });
    assert_eq!(commands[..refreshed].iter().filter(is_write).count(), 3, "{commands:?}");
}

#[test]
#[should_panic(expected = "less than 17 apart")]
fn the_check_finds_a_read_too_soon_after_its_activate() {
    let bank = BankId(0);
    let commands = [(0, Command::Activate { bank, row: 0 }), (16, Command::Read { bank, auto_precharge: false })];
    Standard { config: ddr4_2400() }.check(&commands);
}

#[test]
#[should_panic(expected = "five ACT")]
fn the_check_finds_five_activates_in_a_window() {
    let bank = |turn: u16| BankId(turn % 4 * 4 + turn / 4);
    let commands: Vec<_> =
        (0..5).map(|turn| (u64::from(turn) * 6, Command::Activate { bank: bank(turn), row: 0 })).collect();
    Standard { config: ddr4_2400() }.check(&commands);
}
