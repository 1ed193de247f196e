//! What the rest of a program holds of a node.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use quorate_core::message::ReplicaDescription;
use quorate_core::{Epoch, Offset};
use quorate_driver::{LeaderToken, Leadership, NotAppended, Outcome};
use tokio::sync::{mpsc, oneshot, watch};

/// What is asked of the driver.
pub(crate) enum Command {
    Propose { epoch: Epoch, records: Vec<Bytes>, outcome: oneshot::Sender<Outcome> },
    Resign { epoch: Epoch },
    Describe(oneshot::Sender<ReplicaDescription>),
    Shutdown,
}

/// A node from outside; cheap to clone, usable from any runtime.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) groups: Arc<AtomicU64>,
}

/// An append under way. Dropping it does not take the append back.
#[derive(Debug)]
pub struct Pending {
    outcome: oneshot::Receiver<Outcome>,
    epoch: Epoch,
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let epoch = self.epoch;
        Pin::new(&mut self.outcome)
            .poll(context)
            .map(|outcome| outcome.unwrap_or(Outcome::OutcomeUnknown { offset: Offset(-1), epoch }))
    }
}

impl Handle {
    /// Who leads, as the state machine on this node has been told.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// Appends records to the log, all or none of them, in one batch. Appends through one handle are in order.
    ///
    /// Never waits for room: when too much is waiting, the outcome is [`NotAppended::QueueFull`] at once.
    pub fn append(&self, token: &LeaderToken, records: Vec<Bytes>) -> Pending {
        let (outcome, pending) = oneshot::channel();
        let epoch = token.epoch();
        let command = Command::Propose { epoch, records, outcome };
        if let Err(refused) = self.commands.try_send(command) {
            let (command, reason) = match refused {
                mpsc::error::TrySendError::Full(command) => (command, NotAppended::QueueFull),
                mpsc::error::TrySendError::Closed(command) => (command, NotAppended::Stopped),
            };
            if let Command::Propose { outcome, .. } = command {
                let _ = outcome.send(Outcome::NotAppended(reason));
            }
        }
        Pending { outcome: pending, epoch }
    }

    /// How many groups of writes this node has made durable since its start. Appends of one group share a sync.
    pub fn durable_groups(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// Gives up the leadership of the token's epoch; another epoch is left alone. The node may win again.
    pub async fn resign(&self, token: &LeaderToken) {
        // A node that has stopped does not lead.
        let _ = self.commands.send(Command::Resign { epoch: token.epoch() }).await;
    }

    /// What the replica believes at this moment; none once the node has stopped.
    pub async fn describe(&self) -> Option<ReplicaDescription> {
        let (reply, description) = oneshot::channel();
        self.commands.send(Command::Describe(reply)).await.ok()?;
        description.await.ok()
    }

    /// Asks the node to hand over and stop; [`Node::stopped`](crate::Node::stopped) tells when it has.
    pub async fn shut_down(&self) {
        let _ = self.commands.send(Command::Shutdown).await;
    }
}
