//! Revocations of keys by other processes on the same store. What uses a key for longer than one request (a
//! stream, a session, a login code) asks here at an interval. A process that is alone ends them itself.

use crate::app::App;
use std::time::Duration;

/// With the time a change of keys may stay unseen, a revocation counts within a second.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl App {
    /// How often to call [`Self::end_revoked`]; `None` when no other process can revoke a key.
    pub fn revocation_check_interval(&self) -> Option<Duration> {
        (!self.runtime().is_single_process()).then_some(CHECK_INTERVAL)
    }

    /// Ends the streams, sessions and login codes of keys that another process revoked.
    pub async fn end_revoked(&self) {
        if self.revocation_check_interval().is_some() {
            let (sessions, codes) = (&self.inner.sessions, &self.inner.codes);
            // After a fault of the store the next call tries again.
            let _ = self.inner.keyring.end_revoked(sessions, codes).await;
        }
    }
}
