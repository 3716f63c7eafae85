//! Streams and polls: how many may be open at once, and how long each may stay open.
//!
//! A stream outlives the check of its caller's credential. So it holds a [`StreamGuard`], which
//! ends it when the key or session is revoked, closed or expired. A revocation in this process is signalled;
//! one by another process is found by asking at an interval.

use crate::api::ApiState;
use crate::problem::Problem;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{EndSignal, Identity, Session, Sessions, Unauthenticated, bearer};
use tandem_app::{App, CallerShares, ShareLimits};
use tandem_record::{TenantId, Timestamp};
use tokio::time::Instant;

/// Expiry is checked again at this interval, because the clock may be moved and because each
/// request extends a session.
const RECHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Counts the open streams and polls. Tenants share them, and the keys of a tenant its part; see
/// [`CallerShares`].
pub(crate) struct StreamPermits {
    open: Mutex<CallerShares>,
}

impl StreamPermits {
    pub(crate) fn new(limits: ShareLimits) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::new(CallerShares::new(limits)),
        })
    }

    fn acquire(self: &Arc<Self>, caller: &Identity) -> Result<StreamPermit, Problem> {
        self.acquire_for(&caller.tenant, &caller.key_id)
    }

    /// For whoever has no key, under a name that stands for one.
    pub(crate) fn acquire_for(
        self: &Arc<Self>,
        tenant: &TenantId,
        key: &Arc<str>,
    ) -> Result<StreamPermit, Problem> {
        let mut open = self.open.lock();
        open.check(tenant, key).map_err(Problem::too_many_streams)?;
        open.add(tenant, key);
        Ok(StreamPermit {
            streams: Arc::clone(self),
            tenant: tenant.clone(),
            key: Arc::clone(key),
        })
    }
}

/// One of the open streams; released when dropped.
pub(crate) struct StreamPermit {
    streams: Arc<StreamPermits>,
    tenant: TenantId,
    key: Arc<str>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.open.lock().remove(&self.tenant, &self.key);
    }
}

/// Permits sending until the credential ends.
pub(crate) struct StreamGuard {
    _permit: StreamPermit,
    ended: EndSignal,
    session: Option<(Arc<Sessions>, Session)>,
    expires_at: Option<Timestamp>,
    /// When to ask next whether another process revoked the key. `None` when this process is alone.
    next_check: Option<Instant>,
    app: App,
}

impl ApiState {
    /// For a caller with a key.
    pub(crate) async fn open_stream(
        &self,
        caller: &Identity,
        headers: &HeaderMap,
    ) -> Result<StreamGuard, Problem> {
        let permit = self.streams.acquire(caller)?;
        let header = headers.get(AUTHORIZATION);
        let key = bearer(header.and_then(|value| value.to_str().ok()))?;
        let ended = self.keyring.listen(caller, key, self.now()).await?;
        Ok(StreamGuard {
            _permit: permit,
            ended,
            session: None,
            expires_at: caller.expires_at,
            next_check: next_revocation_check(&self.app),
            app: self.app.clone(),
        })
    }

    /// For a signed-in browser.
    pub(crate) fn open_session_stream(&self, session: &Session) -> Result<StreamGuard, Problem> {
        Ok(StreamGuard {
            _permit: self.streams.acquire(&session.identity)?,
            ended: session.end_signal(),
            session: Some((Arc::clone(&self.sessions), session.clone())),
            expires_at: session.identity.expires_at,
            next_check: next_revocation_check(&self.app),
            app: self.app.clone(),
        })
    }
}

fn next_revocation_check(app: &App) -> Option<Instant> {
    let interval = app.revocation_check_interval()?;
    Some(Instant::now() + interval)
}

/// Yields `frames` as long as the guard permits, then `last`. The guard is checked before every
/// frame and also ends a waiting stream.
pub(crate) fn while_allowed(
    guard: StreamGuard,
    frames: impl Stream<Item = Bytes> + Send + 'static,
    last: &'static str,
) -> impl Stream<Item = Bytes> + Send {
    let open = Some((guard, Box::pin(frames)));
    stream::unfold(open, move |open| async move {
        let (mut guard, mut frames) = open?;
        // Not in the select: frames that are always ready would abort it each time.
        guard.check_revocations().await;
        tokio::select! {
            biased;
            _ = guard.wait_for_end() => Some((Bytes::from_static(last.as_bytes()), None)),
            frame = frames.next() => Some((frame?, Some((guard, frames)))),
        }
    })
}

impl StreamGuard {
    /// Why nothing more may be sent; `None` while sending is permitted.
    pub(crate) fn end_reason(&self) -> Option<Unauthenticated> {
        let now = || self.app.now();
        if self.ended.has_ended() {
            return Some(Unauthenticated::Revoked);
        }
        if self.expires_at.is_some_and(|at| at <= now()) {
            return Some(Unauthenticated::Expired);
        }
        let session = self.session.as_ref();
        let idled_out = session.is_some_and(|(all, one)| !all.is_open(one, now()));
        idled_out.then_some(Unauthenticated::Expired)
    }

    /// Resolves when nothing more may be sent, with the reason.
    pub(crate) async fn wait_for_end(&mut self) -> Unauthenticated {
        loop {
            self.check_revocations().await;
            if let Some(why) = self.end_reason() {
                return why;
            }
            let recheck_delay = self.recheck_delay();
            tokio::select! {
                () = self.ended.wait() => {}
                () = recheck_delay => {}
            }
        }
    }

    /// Asks whether another process revoked the key, when it is time.
    async fn check_revocations(&mut self) {
        if self.next_check.is_some_and(|at| at <= Instant::now()) {
            self.app.end_revoked().await;
            self.next_check = next_revocation_check(&self.app);
        }
    }

    /// Never resolves where only a revocation in this process can end the stream.
    fn recheck_delay(&self) -> impl Future<Output = ()> + use<> {
        let next_check = self
            .next_check
            .map(|at| at.saturating_duration_since(Instant::now()));
        let expiry = match (self.expires_at, &self.session) {
            (None, None) => None,
            (None, Some(_)) => Some(RECHECK_INTERVAL),
            (Some(at), _) => {
                let left = Duration::from_millis(at.ms_since(self.app.now()));
                Some(left.min(RECHECK_INTERVAL))
            }
        };
        let until = expiry.into_iter().chain(next_check).min();
        async move {
            match until {
                Some(until) => tokio::time::sleep(until).await,
                None => std::future::pending().await,
            }
        }
    }
}
