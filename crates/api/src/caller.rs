//! Who is calling: the first three checks of every request, in the protocol's order: rate,
//! credential, scope.

use crate::access_log::Noted;
use crate::api::{Doors, Shared};
use crate::problem::Problem;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use tandem_access::{AuthenticateError, Identity, RateKey, Scope, bearer};

/// What a route demands of a key. A type and not a value, so that the check happens before the
/// body is read.
pub(crate) trait Needs: Send + Sync {
    /// `None` when any good key will do.
    const SCOPE: Option<Scope>;
}

macro_rules! needs {
    ($($name:ident),+ $(,)?) => {$(
        pub(crate) struct $name;
        impl Needs for $name {
            const SCOPE: Option<Scope> = Some(Scope::$name);
        }
    )+
        /// Every scope some route asks for.
        #[cfg(test)]
        const ASKED_FOR: &[Scope] = &[$(Scope::$name),+];
    };
}

needs! {
    ManifestRead, RunsCreate, RunsRead, RunsCancel, ArtifactsRead, ApprovalsRespond, AuditRead, Workflows,
    Keys, Groups, Test, WebhooksManage,
}

/// Any good key.
pub(crate) struct Anyone;
impl Needs for Anyone {
    const SCOPE: Option<Scope> = None;
}

/// An authenticated caller that holds the scope `N` asks for.
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

impl<N: Needs> FromRequestParts<Shared> for Caller<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, doors: &Shared) -> Result<Self, Problem> {
        let identity = authenticate(parts, doors).await?;
        if let Some(noted) = parts.extensions.get::<Noted>() {
            noted.caller(&identity, N::SCOPE);
        }
        if let Some(scope) = N::SCOPE {
            doors.check_scope(&identity, scope, parts).await?;
        }
        Ok(Self {
            identity,
            needed: PhantomData,
        })
    }
}

/// Limits by what was presented, then looks the credential up. Guesses are counted by address as
/// well, because a guesser presents a new credential each time.
pub(crate) async fn authenticate(parts: &Parts, doors: &Doors) -> Result<Identity, Problem> {
    let now = doors.now();
    let now_ms = u64::try_from(now.0).unwrap_or(0);
    let address = peer(parts);
    let header = parts.headers.get(AUTHORIZATION);
    let presented = bearer(header.and_then(|value| value.to_str().ok()));
    let key = match (presented, address) {
        (Ok(credential), _) => RateKey::credential(credential),
        (Err(_), Some(address)) => RateKey::address(address),
        (Err(_), None) => RateKey::credential(""),
    };
    doors.requests.check(key, now_ms)?;
    let outcome = match presented {
        Ok(credential) => doors.keyring.authenticate(credential, now).await,
        Err(why) => Err(why.into()),
    };
    if let (Err(AuthenticateError::Unauthenticated(_)), Some(address)) = (&outcome, address) {
        doors.failures.check(RateKey::address(address), now_ms)?;
    }
    let identity = outcome?;
    doors.note_use(&identity).await;
    Ok(identity)
}

/// Where the connection comes from, if the host serves with connection info.
pub(crate) fn peer(parts: &Parts) -> Option<IpAddr> {
    let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    info.map(|ConnectInfo(address)| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_scope_that_no_route_asks_for() {
        let idle: Vec<&Scope> = Scope::all()
            .iter()
            .filter(|scope| !ASKED_FOR.contains(scope))
            .collect();
        assert!(idle.is_empty(), "{idle:?}");
    }
}
