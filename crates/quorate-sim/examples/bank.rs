//! Your own state machine under all faults: copy this file. `cargo run --example bank -p quorate-sim --profile sim`
//!
//! Accounts and transfers: money is neither made nor lost, whatever happens to the cluster, and at the end of each
//! run all nodes have the same accounts.

use std::collections::BTreeMap;

use bytes::Bytes;
use quorate_core::NodeId;
use quorate_driver::{CommittedBatch, Leadership, StateMachine};
use quorate_sim::random::Digest;
use quorate_sim::runner::{Options, run_seeds};
use quorate_sim::scenarios;
use quorate_sim::workload::Workload;

const ACCOUNTS: u64 = 8;
const EACH: i64 = 1000;

/// What a node has applied.
struct Bank {
    accounts: BTreeMap<u64, i64>,
}

impl StateMachine for Bank {
    fn apply(&mut self, batch: &CommittedBatch) {
        for (_, command) in batch.records() {
            let text = std::str::from_utf8(command).expect("our own commands");
            let numbers: Vec<u64> =
                text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [_, from, to, amount] = numbers[..] else { panic!("a transfer: {text}") };
            let amount = i64::try_from(amount).expect("a small amount");
            *self.accounts.entry(from).or_insert(EACH) -= amount;
            *self.accounts.entry(to).or_insert(EACH) += amount;
        }
        // A promise of your own: a panic is a finding like any other, told with its seed.
        let open = i64::try_from(self.accounts.len()).expect("a few accounts");
        assert_eq!(self.accounts.values().sum::<i64>(), open * EACH, "money is made or lost");
    }

    fn leader_changed(&mut self, _: &Leadership) {}
}

/// How the simulator makes state machines and the commands for them.
#[derive(Clone)]
struct Transfers;

impl Workload for Transfers {
    type Machine = Bank;

    fn machine(&self, _: NodeId) -> Bank {
        Bank { accounts: BTreeMap::new() }
    }

    fn command(&self, n: u64, size: usize) -> Bytes {
        // The number makes each command unlike any other.
        let (from, to) = (n % ACCOUNTS, n / ACCOUNTS % ACCOUNTS);
        Bytes::from(format!("{n} {from} {to} {}", 1 + size % 10))
    }

    fn digest(&self, bank: &Bank) -> u64 {
        let mut digest = Digest::default();
        for (account, balance) in &bank.accounts {
            digest.add(*account);
            digest.add_bytes(&balance.to_be_bytes());
        }
        digest.value()
    }
}

fn main() -> anyhow::Result<()> {
    let scenario = scenarios::find("default").expect("it is there");
    let (statistics, failed) = run_seeds(scenario, 0..50, Options::with_jobs(2), &Transfers)?;
    print!("{}", statistics.table());
    match failed {
        None => println!("PASS bank: {} seeds, {} records", statistics.runs, statistics.committed),
        Some((seed, failure)) => println!("FAIL bank: seed {seed}: {}", failure.what),
    }
    Ok(())
}
