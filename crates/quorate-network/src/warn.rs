//! Warnings about peers, one a peer and period: a stranger cannot fill the log.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a peer that was named is not named again.
const PERIOD: Duration = Duration::from_secs(60);
/// How many peers are remembered; beyond them all strangers are one.
const PEERS: usize = 512;

/// Who was complained about of late.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<HashMap<Option<IpAddr>, Complaint>>);

#[derive(Debug)]
struct Complaint {
    since: Instant,
    withheld: u64,
}

impl Complaints {
    /// Whether to complain about this peer now, and then how often that was withheld before.
    pub(crate) fn admit(&self, peer: IpAddr, now: Instant) -> Option<u64> {
        let mut complaints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !complaints.contains_key(&Some(peer)) && complaints.len() >= PEERS {
            complaints.retain(|_, complaint| now.duration_since(complaint.since) < PERIOD);
        }
        let known = complaints.contains_key(&Some(peer)) || complaints.len() < PEERS;
        let key = known.then_some(peer);
        match complaints.get_mut(&key) {
            Some(complaint) if now.duration_since(complaint.since) < PERIOD => {
                complaint.withheld += 1;
                None
            }
            Some(complaint) => {
                let withheld = complaint.withheld;
                *complaint = Complaint { since: now, withheld: 0 };
                Some(withheld)
            }
            None => {
                complaints.insert(key, Complaint { since: now, withheld: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_named_once_a_period() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(complaints.admit(peer, start), Some(0));
        assert_eq!(complaints.admit(peer, start), None);
        assert_eq!(complaints.admit(peer, start + PERIOD / 2), None);
        assert_eq!(complaints.admit(IpAddr::from([10, 0, 0, 2]), start), Some(0));
        assert_eq!(complaints.admit(peer, start + PERIOD), Some(2));
    }

    #[test]
    fn many_strangers_become_one() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let named = (0..2000u32)
            .filter(|i| complaints.admit(IpAddr::from(i.to_be_bytes()), start).is_some())
            .count();
        assert_eq!(named, PEERS + 1);
        assert!(complaints.0.lock().unwrap().len() <= PEERS + 1);
    }
}
