//! The text of `--status` and `--replication`, in the form of Kafka's kafka-metadata-quorum.

use std::io::Write;

use quorate_wire::Uuid;

use super::report::{Replica, Report};
use crate::failure::Failure;
use crate::say;

/// One label a line, padded to 24 characters.
pub(super) fn status(report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    let (lag, lag_time) = max_lag(report);
    for (label, value) in [
        ("ClusterId:", report.cluster_id.clone().unwrap_or_else(|| "-".to_owned())),
        ("LeaderId:", report.leader_id.to_string()),
        ("LeaderEpoch:", report.leader_epoch.to_string()),
        ("HighWatermark:", report.high_watermark.to_string()),
        ("MaxFollowerLag:", lag.to_string()),
        ("MaxFollowerLagTimeMs:", lag_time.to_string()),
        ("CurrentVoters:", replicas(report, &report.current_voters)),
        ("CurrentObservers:", replicas(report, &report.observers)),
    ] {
        say(out, &format!("{label:<24}{value}"))?;
    }
    Ok(())
}

/// How far the last voter is behind the leader, in records and in milliseconds; -1 for unknown.
fn max_lag(report: &Report) -> (i64, i64) {
    let leader = report.current_voters.iter().find(|voter| voter.replica_id == report.leader_id);
    let last = report.current_voters.iter().min_by_key(|voter| voter.log_end_offset);
    let (Some(leader), Some(last)) = (leader, last) else { return (-1, -1) };
    let lag = leader.log_end_offset.saturating_sub(last.log_end_offset);
    let (newest, oldest) = (leader.last_caught_up_timestamp, last.last_caught_up_timestamp);
    let time = match () {
        () if last.replica_id == leader.replica_id => 0,
        () if newest < 0 || oldest < 0 => -1,
        () => newest.saturating_sub(oldest),
    };
    (lag, time)
}

fn replicas(report: &Report, replicas: &[Replica]) -> String {
    let one = |replica: &Replica| {
        let mut fields = vec![format!("\"id\": {}", replica.replica_id)];
        if replica.replica_directory_id != Uuid::ZERO {
            fields.push(format!("\"directoryId\": \"{}\"", replica.replica_directory_id));
        }
        let node = report.nodes.iter().find(|node| node.node_id == replica.replica_id);
        let listeners = node.map_or(&[][..], |node| &node.listeners);
        if !listeners.is_empty() {
            let endpoints: Vec<String> = listeners
                .iter()
                .map(|l| match l.host.contains(':') {
                    true => format!("\"{}://[{}]:{}\"", l.name, l.host, l.port),
                    false => format!("\"{}://{}:{}\"", l.name, l.host, l.port),
                })
                .collect();
            fields.push(format!("\"endpoints\": [{}]", endpoints.join(", ")));
        }
        format!("{{{}}}", fields.join(", "))
    };
    format!("[{}]", replicas.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// One replica a line, a tab after each column. With `now` timestamps become ages.
pub(super) fn replication(
    report: &Report,
    now: Option<i64>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    const HEADER: [&str; 7] = [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    ];
    let is_leader = |replica: &&Replica| replica.replica_id == report.leader_id;
    let leader = report.current_voters.iter().filter(is_leader).map(|replica| (replica, "Leader"));
    let followers = report.current_voters.iter().filter(|replica| !is_leader(replica));
    let rows = leader
        .chain(followers.map(|replica| (replica, "Follower")))
        .chain(report.observers.iter().map(|replica| (replica, "Observer")));
    let end =
        report.current_voters.iter().find(is_leader).map_or(-1, |leader| leader.log_end_offset);
    let time = |timestamp: i64| match now {
        Some(now) if timestamp >= 0 => format!("{} ms ago", now.saturating_sub(timestamp)),
        _ => timestamp.to_string(),
    };
    let mut table = vec![HEADER.map(str::to_owned)];
    table.extend(rows.map(|(replica, status)| {
        [
            replica.replica_id.to_string(),
            replica.replica_directory_id.to_string(),
            replica.log_end_offset.to_string(),
            end.saturating_sub(replica.log_end_offset).to_string(),
            time(replica.last_fetch_timestamp),
            time(replica.last_caught_up_timestamp),
            status.to_owned(),
        ]
    }));
    let mut widths = [0; 7];
    for row in &table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    for row in &table {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}\t"));
        say(out, &cells.collect::<String>())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Address, Node};
    use super::*;

    fn replica(id: i32, end: i64, fetched: i64, caught_up: i64) -> Replica {
        Replica {
            replica_id: id,
            replica_directory_id: Uuid([u8::try_from(id).expect("small"); 16]),
            log_end_offset: end,
            last_fetch_timestamp: fetched,
            last_caught_up_timestamp: caught_up,
        }
    }

    fn report() -> Report {
        let node = |node_id, host: &str| Node {
            node_id,
            listeners: vec![Address {
                name: "CONTROLLER".to_owned(),
                host: host.to_owned(),
                port: 9093,
            }],
        };
        let mut observer = replica(4, 8, 5000, -1);
        observer.replica_directory_id = Uuid::ZERO;
        Report {
            cluster_id: Some("fMCL8kv1SWm87L_Md-I2hg".to_owned()),
            leader_id: 2,
            leader_epoch: 3,
            high_watermark: 10,
            current_voters: vec![replica(1, 7, 4000, 3500), replica(2, 11, 6000, 6000)],
            observers: vec![observer],
            nodes: vec![node(1, "c1.example"), node(2, "::1")],
            replicas: None,
            unreachable: None,
        }
    }

    fn text(print: impl Fn(&mut dyn Write) -> Result<(), Failure>) -> String {
        let mut out = Vec::new();
        print(&mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn status_has_kafkas_form() {
        assert_eq!(
            text(|out| status(&report(), out)),
            "\
ClusterId:              fMCL8kv1SWm87L_Md-I2hg
LeaderId:               2
LeaderEpoch:            3
HighWatermark:          10
MaxFollowerLag:         4
MaxFollowerLagTimeMs:   2500
CurrentVoters:          [{\"id\": 1, \"directoryId\": \"AQEBAQEBAQEBAQEBAQEBAQ\", \"endpoints\": [\"CONTROLLER://c1.example:9093\"]}, {\"id\": 2, \"directoryId\": \"AgICAgICAgICAgICAgICAg\", \"endpoints\": [\"CONTROLLER://[::1]:9093\"]}]
CurrentObservers:       [{\"id\": 4}]
"
        );
    }

    #[test]
    fn replication_has_kafkas_form() {
        assert_eq!(
            text(|out| replication(&report(), None, out)),
            "\
NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t
2     \tAgICAgICAgICAgICAgICAg\t11          \t0  \t6000              \t6000                 \tLeader  \t
1     \tAQEBAQEBAQEBAQEBAQEBAQ\t7           \t4  \t4000              \t3500                 \tFollower\t
4     \tAAAAAAAAAAAAAAAAAAAAAA\t8           \t3  \t5000              \t-1                   \tObserver\t
"
        );
        let ages = text(|out| replication(&report(), Some(6100), out));
        assert!(ages.contains("\t100 ms ago") && ages.contains("\t-1  "), "{ages}");
    }

    #[test]
    fn json_has_the_fields_of_describe_quorum() {
        let json = serde_json::to_value(report()).expect("json");
        let names: Vec<&str> =
            json.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "clusterId",
                "leaderId",
                "leaderEpoch",
                "highWatermark",
                "currentVoters",
                "observers",
                "nodes"
            ]
        );
        assert_eq!(json["currentVoters"][0]["replicaDirectoryId"], "AQEBAQEBAQEBAQEBAQEBAQ");
        assert_eq!(json["currentVoters"][0]["lastCaughtUpTimestamp"], 3500);
        assert_eq!(json["nodes"][1]["listeners"][0]["host"], "::1");
    }
}
