//! Browser sessions of the console.
//!
//! Invariants:
//! - The session id is held only as a digest, so a memory dump does not contain a usable cookie.
//! - A session ends when it is idle too long, when its key expires, when its key is revoked (which calls
//!   [`Sessions::close_for_key`]), or when the process ends.
//! - A change from a browser needs the session's CSRF token besides the cookie.

use crate::digest::{Digest, constant_time_eq};
use crate::end_signal::EndSignal;
use crate::secret::random_token;
use crate::{Identity, Secret};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{TenantId, Timestamp};
use tokio::sync::watch;

const CAPACITY: usize = 1_024;

pub struct Sessions {
    idle_ms: u64,
    open: Mutex<HashMap<Digest, Entry>>,
}

struct Entry {
    session: Session,
    last_used: Timestamp,
    /// Dropped with the entry, which signals the end to listeners.
    _ended: watch::Sender<()>,
}

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Session {
    pub identity: Identity,
    /// Included in every form the console renders.
    pub csrf: Secret,
    digest: Digest,
    ended: EndSignal,
}

/// A new session. `id` may be sent only in an `HttpOnly` cookie.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    pub id: Secret,
    pub session: Session,
}

impl Session {
    /// Signals when the session is closed; not when it expires by idle time or with its key.
    pub fn end_signal(&self) -> EndSignal {
        self.ended.clone()
    }

    pub fn csrf_matches(&self, presented: &str) -> bool {
        constant_time_eq(self.csrf.expose().as_bytes(), presented.as_bytes())
    }
}

impl Sessions {
    pub fn new(idle_ms: u64) -> Self {
        Self {
            idle_ms,
            open: Mutex::default(),
        }
    }

    /// Opens a session. At the limit, the least recently used session is evicted.
    pub fn open(&self, identity: Identity, now: Timestamp) -> OpenedSession {
        let id = Secret::new(random_token());
        let digest = Digest::of(id.expose());
        let (sender, ended) = EndSignal::channel();
        let session = Session {
            identity,
            csrf: Secret::new(random_token()),
            digest,
            ended,
        };
        let mut open = self.open.lock();
        open.retain(|_, entry| self.is_alive(entry, now));
        if open.len() >= CAPACITY {
            let stalest = open
                .iter()
                .min_by_key(|(_, entry)| entry.last_used)
                .map(|(digest, _)| *digest);
            if let Some(digest) = stalest {
                open.remove(&digest);
            }
        }
        open.insert(
            digest,
            Entry {
                session: session.clone(),
                last_used: now,
                _ended: sender,
            },
        );
        OpenedSession { id, session }
    }

    /// The session of a cookie. This call resets its idle time.
    pub fn get(&self, id: &str, now: Timestamp) -> Option<Session> {
        let digest = Digest::of(id);
        let mut open = self.open.lock();
        let entry = open.get_mut(&digest)?;
        if !self.is_alive(entry, now) {
            open.remove(&digest);
            return None;
        }
        entry.last_used = entry.last_used.max(now);
        Some(entry.session.clone())
    }

    /// Whether the session is still open. This call does not reset its idle time.
    pub fn is_open(&self, session: &Session, now: Timestamp) -> bool {
        let open = self.open.lock();
        let entry = open.get(&session.digest);
        entry.is_some_and(|entry| self.is_alive(entry, now))
    }

    pub fn close(&self, session: &Session) {
        self.open.lock().remove(&session.digest);
    }

    /// Ends every session that was opened with a key, when the key is revoked.
    pub fn close_for_key(&self, key_id: &str) {
        self.open
            .lock()
            .retain(|_, entry| &*entry.session.identity.key_id != key_id);
    }

    /// The keys that sessions were opened with, and the tenants that own them.
    pub(crate) fn keys(&self) -> Vec<(TenantId, Arc<str>)> {
        let open = self.open.lock();
        let identities = open.values().map(|entry| &entry.session.identity);
        identities.map(Identity::owned_key).collect()
    }

    fn is_alive(&self, entry: &Entry, now: Timestamp) -> bool {
        let key_ended = entry
            .session
            .identity
            .expires_at
            .is_some_and(|at| at <= now);
        !key_ended && now.ms_since(entry.last_used) < self.idle_ms
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }
}
