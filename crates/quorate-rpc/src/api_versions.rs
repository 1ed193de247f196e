//! ApiVersions: what we serve, and which versions we use with a peer (KIP-35, KIP-511, KIP-853,
//! KIP-1242).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;
use quorate_core::message::{ErrorCode, KRaftVersion, Unreachable};
use quorate_wire::EncodeError;
use quorate_wire::frame::encode_request as frame;
use quorate_wire::message::{
    ApiKey, ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey,
    SupportedFeatureKey,
};

use crate::client::decode_answer;

/// The newest version that we speak, which a new connection begins with.
pub const LATEST: i16 = 5;

/// What replicas serve; of the other APIs we only know the messages.
pub const SERVED: [ApiKey; 8] = [
    ApiKey::Fetch,
    ApiKey::ApiVersions,
    ApiKey::Vote,
    ApiKey::BeginQuorumEpoch,
    ApiKey::EndQuorumEpoch,
    ApiKey::DescribeQuorum,
    ApiKey::FetchSnapshot,
    ApiKey::DescribeReplica,
];

/// How our own clients call themselves. To them we list what is private to us.
pub const SOFTWARE_NAME: &str = "quorate";

/// The levels of metadata.version that Kafka 4.4 supports. A Java controller takes us into its quorum
/// only if we claim the level that the cluster has; the log's data records are opaque to us.
const METADATA_VERSIONS: (i16, i16) = (7, 33);
/// From this version on a client can take a feature whose minimum is 0 (KAFKA-17011).
const ZERO_MINIMUM_SINCE: i16 = 4;

/// The answer to a version that we do not know: read as version 0, with the versions that we know.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION.0,
        api_keys: vec![listed(ApiKey::ApiVersions)],
        ..Default::default()
    }
}

/// What we serve, or INVALID_REQUEST for a client that names itself badly.
pub(crate) fn answer(
    request: &ApiVersionsRequest,
    version: i16,
    kraft_version: KRaftVersion,
) -> ApiVersionsResponse {
    if !is_valid(request, version) {
        return ApiVersionsResponse {
            error_code: ErrorCode::INVALID_REQUEST.0,
            ..Default::default()
        };
    }
    let ours = request.client_software_name == SOFTWARE_NAME;
    let supported = [
        ("metadata.version", METADATA_VERSIONS),
        ("kraft.version", (KRaftVersion::SUPPORTED.0.0, KRaftVersion::SUPPORTED.1.0)),
    ];
    let finalized = (kraft_version.0 > 0).then(|| FinalizedFeatureKey {
        name: "kraft.version".to_owned(),
        max_version_level: kraft_version.0,
        min_version_level: kraft_version.0,
        ..Default::default()
    });
    ApiVersionsResponse {
        api_keys: SERVED
            .iter()
            .filter(|api| ours || !api.is_private())
            .map(|api| listed(*api))
            .collect(),
        supported_features: supported
            .into_iter()
            .filter(|(_, (min, _))| *min > 0 || version >= ZERO_MINIMUM_SINCE)
            .map(|(name, (min, max))| SupportedFeatureKey {
                name: name.to_owned(),
                min_version: min,
                max_version: max,
                ..Default::default()
            })
            .collect(),
        finalized_features: finalized.into_iter().collect(),
        ..Default::default()
    }
}

fn listed(api: ApiKey) -> ApiVersion {
    let versions = api.versions();
    ApiVersion {
        api_key: api.code(),
        min_version: *versions.start(),
        max_version: *versions.end(),
        ..Default::default()
    }
}

fn is_valid(request: &ApiVersionsRequest, version: i16) -> bool {
    let named = version < 3
        || (is_software_name(&request.client_software_name)
            && is_software_name(&request.client_software_version));
    named && request.cluster_id.is_some() == (request.node_id != -1)
}

/// Letters and digits, with `-` and `.` inside.
fn is_software_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(edge)
        && name.ends_with(edge)
        && name.chars().all(|c| edge(c) || c == '-' || c == '.')
}

/// What a peer serves.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Versions {
    apis: BTreeMap<i16, (i16, i16)>,
    features: BTreeMap<String, (i16, i16)>,
}

impl Versions {
    /// The highest version of this API that both sides speak.
    pub fn choose(&self, api: ApiKey) -> Option<i16> {
        self.common(api.code(), &api.versions())
    }

    /// The highest version in `ours` that the peer serves.
    pub fn common(&self, key: i16, ours: &RangeInclusive<i16>) -> Option<i16> {
        let (min, max) = *self.apis.get(&key)?;
        let highest = max.min(*ours.end());
        (highest >= min && highest >= *ours.start()).then_some(highest)
    }

    /// The peer's versions of an API, lowest and highest.
    pub fn of(&self, key: i16) -> Option<(i16, i16)> {
        self.apis.get(&key).copied()
    }

    /// The levels of a feature that the peer supports, lowest and highest.
    pub fn feature(&self, name: &str) -> Option<(i16, i16)> {
        self.features.get(name).copied()
    }
}

/// What a peer says to our ApiVersions request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What it serves.
    Versions(Versions),
    /// It does not know the version that we asked at: ask again at this lower one.
    AskAgain(i16),
}

/// An ApiVersions request of ours, as a frame in slices.
///
/// # Errors
/// If `client_id` is longer than a string may be.
pub fn encode_request(
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<Vec<Bytes>, EncodeError> {
    let request = ApiVersionsRequest {
        client_software_name: SOFTWARE_NAME.to_owned(),
        client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    };
    frame(version, correlation_id, client_id, &request)
}

/// Decodes the answer to an ApiVersions request at `version`.
///
/// # Errors
/// The answer's error, [`Unreachable::UnsupportedVersion`] if no version is common, or
/// [`Unreachable::Malformed`].
pub fn decode_response(version: i16, frame: Bytes) -> Result<Answer, Unreachable> {
    let decode =
        |version| decode_answer::<ApiVersionsResponse>(ApiKey::ApiVersions, version, frame.clone());
    // A peer that does not know our version answers in version 0, whose error code comes first too.
    let unsupported = frame.get(4..6) == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
    let version_of_answer = if unsupported { 0 } else { version };
    let response = decode(version_of_answer).map_err(|_| Unreachable::Malformed)?;
    let versions = Versions {
        apis: response
            .api_keys
            .iter()
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect(),
        features: response
            .supported_features
            .into_iter()
            .map(|feature| (feature.name, (feature.min_version, feature.max_version)))
            .collect(),
    };
    match ErrorCode(response.error_code) {
        ErrorCode::NONE => Ok(Answer::Versions(versions)),
        ErrorCode::UNSUPPORTED_VERSION => {
            // Very old servers list nothing; version 0 is what they must know.
            let lower = match versions.apis.is_empty() {
                true => Some(0),
                false => versions.common(ApiKey::ApiVersions.code(), &(0..=version - 1)),
            };
            lower
                .filter(|lower| *lower < version)
                .map(Answer::AskAgain)
                .ok_or(Unreachable::UnsupportedVersion)
        }
        error => Err(Unreachable::TopLevel(error)),
    }
}
