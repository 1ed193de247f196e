//! What is measured beside each other.

use clap::ValueEnum;

/// What the command line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum System {
    /// The model of the limit.
    Floor,
    Quorate,
    Etcd,
    Kafka,
}

/// What a line of a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Floor,
    Quorate,
    /// With an append call for each record, as callers make that know nothing of one another.
    QuorateCalls,
    Etcd,
    /// With its default linger.
    Kafka,
    KafkaNoLinger,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Floor => "floor",
            Who::Quorate => "Quorate",
            Who::QuorateCalls => "Quorate, a call for each record",
            Who::Etcd => "etcd",
            Who::Kafka => "Kafka",
            Who::KafkaNoLinger => "Kafka, linger 0",
        }
    }
}
