//! The identity of one logical side effect, as the protocol composes it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use tandem_record::{EffectId, NodeId, RunId, TenantId};

/// `ordinal` counts the side effects a node intends, so it is the same for every attempt at one of
/// them; `provider_key` says what is called. A fork has another run id and so other effect ids.
pub fn logical_invocation_id(
    tenant: &TenantId,
    run: &RunId,
    node: &NodeId,
    ordinal: u64,
    provider_key: &str,
) -> EffectId {
    let parts = [
        "openwop:activity:v2",
        tenant.as_str(),
        run.as_str(),
        node.as_str(),
        &ordinal.to_string(),
        provider_key,
    ];
    EffectId::from(URL_SAFE_NO_PAD.encode(Sha256::digest(parts.join("\0"))))
}
