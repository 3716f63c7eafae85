//! Authenticates the caller: the first three checks of every request, in the protocol's order:
//! rate, credential, scope.

use crate::access_log::AccessLogContext;
use crate::api::{ApiState, SharedState};
use crate::connection_key::check_connection;
use crate::problem::Problem;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use tandem_access::{AuthenticateError, Identity, RateKey, Scope, bearer};
use tandem_app::{AppError, ForbiddenReason};

/// The scope a route requires. It is a type and not a value, so that the check happens before the
/// body is read.
pub(crate) trait RequiredScope: Send + Sync {
    /// `None` when any valid key is accepted.
    const SCOPE: Option<Scope>;
    /// Whether the route is open to keys that are good for one agent only. Its use case then checks the agent.
    const SERVES_AGENT_KEYS: bool = false;
}

/// The same scope, on a route about conversations: what it reads and writes is of the agent of such a key.
pub(crate) struct OfConversations<N>(PhantomData<N>);

impl<N: RequiredScope> RequiredScope for OfConversations<N> {
    const SCOPE: Option<Scope> = N::SCOPE;
    const SERVES_AGENT_KEYS: bool = true;
}

macro_rules! required_scopes {
    ($($name:ident),+ $(,)?) => {$(
        pub(crate) struct $name;
        impl RequiredScope for $name {
            const SCOPE: Option<Scope> = Some(Scope::$name);
        }
    )+
        /// Every scope that some route requires.
        #[cfg(test)]
        const REQUIRED_SCOPES: &[Scope] = &[$(Scope::$name),+];
    };
}

required_scopes! {
    ManifestRead, RunsCreate, RunsRead, RunsCancel, ArtifactsRead, ApprovalsRespond, AuditRead, Workflows,
    ConversationsTakeover, Keys, Groups, Test, WebhooksManage,
}

/// Any valid key.
pub(crate) struct AnyScope;
impl RequiredScope for AnyScope {
    const SCOPE: Option<Scope> = None;
}

/// An authenticated caller that holds the scope `N` requires, with a key that is good for the route.
pub(crate) struct Caller<N> {
    identity: Identity,
    needed: PhantomData<N>,
}

impl<N> Deref for Caller<N> {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl<N: RequiredScope> FromRequestParts<SharedState> for Caller<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &SharedState) -> Result<Self, Problem> {
        let identity = authenticate(parts, api).await?;
        if let Some(log_context) = parts.extensions.get::<AccessLogContext>() {
            log_context.set_caller(&identity, N::SCOPE);
        }
        check_connection(parts, &identity)?;
        if let Some(scope) = N::SCOPE {
            let method = parts.method.as_str();
            api.app.check_scope(&identity, scope, method).await?;
        }
        if identity.agent.is_some() && !N::SERVES_AGENT_KEYS {
            return Err(AppError::from(ForbiddenReason::BoundToAgent).into());
        }
        Ok(Self {
            identity,
            needed: PhantomData,
        })
    }
}

/// Applies the rate limit of the presented credential, then looks the credential up. Failures are
/// also counted by address, because a guessing client presents a new credential each time.
pub(crate) async fn authenticate(parts: &Parts, api: &ApiState) -> Result<Identity, Problem> {
    let now = api.now();
    let now_ms = u64::try_from(now.0).unwrap_or(0);
    let address = peer_address(parts);
    let header = parts.headers.get(AUTHORIZATION);
    let presented = bearer(header.and_then(|value| value.to_str().ok()));
    let key = match (presented, address) {
        (Ok(credential), _) => RateKey::credential(credential),
        (Err(_), Some(address)) => RateKey::address(address),
        (Err(_), None) => RateKey::credential(""),
    };
    api.requests.check(key, now_ms)?;
    look_up(parts, api).await
}

/// Looks the credential up without a limit for good ones: what everybody may read is not refused to whoever
/// presents a key.
pub(crate) async fn look_up(parts: &Parts, api: &ApiState) -> Result<Identity, Problem> {
    let now = api.now();
    let now_ms = u64::try_from(now.0).unwrap_or(0);
    let address = peer_address(parts);
    let header = parts.headers.get(AUTHORIZATION);
    let outcome = match bearer(header.and_then(|value| value.to_str().ok())) {
        Ok(credential) => api.keyring.authenticate(credential, now).await,
        Err(why) => Err(why.into()),
    };
    if let (Err(AuthenticateError::Unauthenticated(_)), Some(address)) = (&outcome, address) {
        api.failures.check(RateKey::address(address), now_ms)?;
    }
    let identity = outcome?;
    api.app.audit_key_use(&identity).await;
    Ok(identity)
}

/// The peer address, if the host serves with connection info.
pub(crate) fn peer_address(parts: &Parts) -> Option<IpAddr> {
    let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    info.map(|ConnectInfo(address)| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_is_required_by_a_route() {
        let idle: Vec<&Scope> = Scope::all()
            .iter()
            .filter(|scope| !REQUIRED_SCOPES.contains(scope))
            .collect();
        assert!(idle.is_empty(), "{idle:?}");
    }
}
