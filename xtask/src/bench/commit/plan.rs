//! What is measured how often, and in which order.

use std::time::Duration;

use anyhow::{Result, bail};

use super::Options;
use super::sample::{Load, Window};
use super::targets;
use super::who::{System, Who};

/// A row of a table: one system under one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) who: Who,
    pub(super) load: Load,
    /// How often it is measured, at least once.
    pub(super) rounds: u32,
}

/// All that is measured.
pub(super) struct Plan {
    pub(super) systems: Vec<System>,
    /// As they follow one another in a round. What is divided by another stands before it, with nothing longer between.
    pub(super) rows: Vec<Row>,
    /// Whose highest rate is looked for.
    pub(super) ceilings: Vec<Who>,
    pub(super) window: Window,
    kafka_length: Duration,
}

/// Rates of the open loop, if Kafka is measured.
const RATES: [u32; 3] = [100, 20_000, 60_000];

/// Numbers in flight at which Quorate is measured with a call for each record too, beside etcd, where each put is one.
const CALLS_IN_FLIGHT: [u32; 2] = [64, 256];

impl Plan {
    pub(super) fn new(options: &Options) -> Result<Plan> {
        let Ok(warm_up) = Duration::try_from_secs_f64(options.warm_up) else {
            bail!("--warm-up {}: give seconds", options.warm_up);
        };
        let window = Window {
            record_bytes: options.record_bytes,
            batch: options.batch,
            warm_up,
            length: Duration::from_secs(options.seconds),
        };
        let kafka_length = Duration::from_secs(options.kafka_seconds);
        if options.quick {
            let systems = vec![System::Floor, System::Quorate];
            let rows = closed(&systems, &[1, 64], 1);
            let (warm_up, length) = (Duration::from_millis(300), Duration::from_secs(1));
            let window = Window { warm_up, length, ..window };
            return Ok(Plan { systems, rows, ceilings: Vec::new(), window, kafka_length });
        }
        let systems = options.systems.clone();
        let has_kafka = systems.contains(&System::Kafka);
        let rates: &[u32] = match &options.rates {
            Some(rates) => rates,
            None if has_kafka => &RATES,
            None => &[],
        };
        let mut rows = closed(&systems, &options.inflight, options.rounds);
        rows.extend(open(&systems, rates, options.rounds, options.kafka_rounds));
        let looks = options.ceiling || (has_kafka && !options.no_ceiling);
        let ceilings = [(System::Quorate, Who::Quorate), (System::Kafka, Who::KafkaNoLinger)];
        let ceilings = ceilings.iter().filter(|(system, _)| looks && systems.contains(system));
        let ceilings = ceilings.map(|(_, who)| *who).collect();
        Ok(Plan { systems, rows, ceilings, window, kafka_length })
    }

    pub(super) fn has(&self, system: System) -> bool {
        self.systems.contains(&system)
    }

    /// How many rounds there are.
    pub(super) fn rounds(&self) -> u32 {
        self.rows.iter().map(|row| row.rounds).max().unwrap_or(0)
    }

    /// How long a system is measured each time.
    pub(super) fn length(&self, who: Who) -> Duration {
        match who {
            Who::Kafka | Who::KafkaNoLinger => self.kafka_length,
            Who::Floor | Who::Quorate | Who::QuorateCalls | Who::Etcd => self.window.length,
        }
    }
}

fn closed(systems: &[System], in_flight: &[u32], rounds: u32) -> Vec<Row> {
    let has = |system| systems.contains(&system);
    let mut rows = Vec::new();
    for number in in_flight {
        let calls = CALLS_IN_FLIGHT.contains(number) && has(System::Quorate) && has(System::Etcd);
        let all = [
            (Who::Floor, has(System::Floor)),
            (Who::Quorate, has(System::Quorate)),
            (Who::QuorateCalls, calls),
            (Who::Etcd, has(System::Etcd)),
        ];
        let load = Load::Closed(*number);
        let measured = all.into_iter().filter(|(_, is_measured)| *is_measured);
        rows.extend(measured.map(|(who, _)| Row { who, load, rounds }));
    }
    rows
}

/// Kafka takes long: unless told otherwise only what a target is judged by is measured more than once.
fn open(systems: &[System], rates: &[u32], rounds: u32, kafka_rounds: Option<u32>) -> Vec<Row> {
    let has = |system| systems.contains(&system);
    let mut rows = Vec::new();
    for rate in rates {
        let load = Load::Open(*rate);
        let of_kafka = |who| match kafka_rounds {
            _ if !has(System::Kafka) => 0,
            Some(rounds) => rounds,
            None if targets::is_judged_by(who, load) => rounds,
            None => 1,
        };
        let (no_linger, linger) = (of_kafka(Who::KafkaNoLinger), of_kafka(Who::Kafka));
        let of_quorate = if has(System::Quorate) { rounds.max(no_linger) } else { 0 };
        let all =
            [(Who::Quorate, of_quorate), (Who::KafkaNoLinger, no_linger), (Who::Kafka, linger)];
        let measured = all.into_iter().filter(|(_, rounds)| *rounds > 0);
        rows.extend(measured.map(|(who, rounds)| Row { who, load, rounds }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn plan(flags: &str) -> Plan {
        let words = std::iter::once("bench").chain(flags.split_ascii_whitespace());
        let line = Line::try_parse_from(words).expect(flags);
        Plan::new(&line.options).expect(flags)
    }

    fn of(plan: &Plan, load: Load) -> Vec<(Who, u32)> {
        let rows = plan.rows.iter().filter(|row| row.load == load);
        rows.map(|row| (row.who, row.rounds)).collect()
    }

    #[test]
    fn what_a_target_is_judged_by_is_measured_in_each_round() {
        let all = plan("");
        let judged = vec![(Who::Quorate, 5), (Who::KafkaNoLinger, 5), (Who::Kafka, 1)];
        assert_eq!(of(&all, Load::Open(100)), judged);
        assert_eq!(of(&all, Load::Open(20_000)), judged);
        let other = vec![(Who::Quorate, 5), (Who::KafkaNoLinger, 1), (Who::Kafka, 1)];
        assert_eq!(of(&all, Load::Open(60_000)), other);
        assert_eq!(all.ceilings, [Who::Quorate, Who::KafkaNoLinger]);
        assert_eq!(all.rounds(), 5);

        let told = plan("--rounds 2 --kafka-rounds 3 --no-ceiling");
        let each = vec![(Who::Quorate, 3), (Who::KafkaNoLinger, 3), (Who::Kafka, 3)];
        assert_eq!(of(&told, Load::Open(60_000)), each);
        assert_eq!((told.rounds(), told.ceilings.len()), (3, 0));
    }

    #[test]
    fn a_call_for_each_record_stands_beside_etcd() {
        let all = plan("--rounds 2");
        let beside =
            [Who::Floor, Who::Quorate, Who::QuorateCalls, Who::Etcd].map(|who| (who, 2)).to_vec();
        assert_eq!(of(&all, Load::Closed(64)), beside);
        assert_eq!(of(&all, Load::Closed(256)), beside);
        assert_eq!(of(&all, Load::Closed(1)).len(), 3);

        let alone = plan("--systems floor,quorate --ceiling");
        assert_eq!(of(&alone, Load::Closed(64)).len(), 2);
        assert_eq!(alone.ceilings, [Who::Quorate]);
        assert!(alone.rows.iter().all(|row| matches!(row.load, Load::Closed(_))));
        assert_eq!((plan("--quick").rows.len(), plan("--quick").rounds()), (4, 1));
    }
}
