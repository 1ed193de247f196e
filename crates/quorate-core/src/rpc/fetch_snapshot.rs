//! FetchSnapshot: a slice of a snapshot (KIP-630).
//!
//! This replica keeps no snapshot but the 0-0 checkpoint, which is local input and never served.

use crate::io::RequestId;
use crate::message::{ErrorCode, FetchSnapshotRequest, FetchSnapshotResponse, Response, Via};
use crate::outbox::Turn;
use crate::replica::Replica;

impl Replica {
    pub(crate) fn on_fetch_snapshot(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: &Via,
        request: &FetchSnapshotRequest,
    ) {
        let error = match self.check_leader(request.epoch) {
            Err(error) => error,
            Ok(()) => ErrorCode::SNAPSHOT_NOT_FOUND,
        };
        let response = FetchSnapshotResponse {
            error,
            current: self.current_leader(via),
            snapshot: request.snapshot,
        };
        self.outbox.answer(turn, id, Response::FetchSnapshot(response));
    }
}
