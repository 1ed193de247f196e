//! When a quorum at rest has replicated everything.

use serde_json::Value;

/// The high watermark, if all voters have everything and all of it is committed.
pub(super) fn settled(description: &Value, voters: usize) -> Option<i64> {
    let high_watermark = description.get("highWatermark")?.as_i64()?;
    let current = description.get("currentVoters")?.as_array()?;
    let ends = current.iter().map(|voter| voter.get("logEndOffset").and_then(Value::as_i64));
    let all_there = ends.into_iter().all(|end| end == Some(high_watermark));
    (all_there && current.len() == voters && high_watermark > 0).then_some(high_watermark)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quorum_is_settled_once_all_voters_are_at_the_high_watermark() {
        let describe = |high_watermark: i64, ends: &[i64]| {
            let voters: Vec<Value> = ends
                .iter()
                .zip(1..)
                .map(|(end, id)| json!({"replicaId": id, "logEndOffset": end}))
                .collect();
            settled(
                &json!({"leaderId": 1, "highWatermark": high_watermark, "currentVoters": voters}),
                3,
            )
        };
        assert_eq!(describe(9, &[9, 9, 9]), Some(9));
        assert_eq!(describe(9, &[9, 9, 8]), None);
        assert_eq!(describe(9, &[10, 10, 10]), None);
        assert_eq!(describe(9, &[9, 9]), None);
        assert_eq!(describe(-1, &[]), None);
        assert_eq!(settled(&json!({}), 3), None);
    }
}
