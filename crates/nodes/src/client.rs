//! An HTTP client that cannot be led astray: the one way out for nodes and webhooks.

use crate::guard::{Rejected, UrlGuard};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The platform's trust store or TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be built: {0}")]
pub struct ClientError(#[source] reqwest::Error);

/// A client that resolves through the guard, follows no redirect, uses no proxy and repeats
/// nothing by itself. It checks addresses of names only: the caller passes every URL through
/// [`UrlGuard::check_url`] first, because a literal address is never resolved.
pub fn guarded_client(
    guard: Arc<UrlGuard>,
    connect_timeout: Duration,
) -> Result<reqwest::Client, ClientError> {
    // An error means that a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .dns_resolver(Arc::new(GuardedResolver::new(guard)))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(ClientError)
}

/// Resolves a name once and hands exactly the checked addresses to the connector. There is no
/// second resolution for a rebinding name to answer differently.
pub struct GuardedResolver {
    guard: Arc<UrlGuard>,
}

impl GuardedResolver {
    pub fn new(guard: Arc<UrlGuard>) -> Self {
        Self { guard }
    }

    /// All or nothing: a name that mixes public and private addresses is trying something, and
    /// the connector would be free to pick the private one.
    pub(crate) fn vet(&self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Rejected> {
        for address in &addresses {
            self.guard.check_ip(address.ip())?;
        }
        Ok(addresses)
    }

    pub(crate) async fn lookup(&self, name: &str) -> Result<Vec<SocketAddr>, LookupError> {
        // Port 0 lets the connector fill in the URL's port.
        let addresses = tokio::net::lookup_host((name, 0)).await?;
        Ok(self.vet(addresses.collect())?)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error(transparent)]
    Rejected(#[from] Rejected),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Self::new(self.guard.clone());
        Box::pin(async move {
            match resolver.lookup(name.as_str()).await {
                Ok(addresses) => Ok(Box::new(addresses.into_iter()) as Addrs),
                // Unwrapped, so that a rejection can be found again in the client's error.
                Err(LookupError::Rejected(rejected)) => Err(rejected.into()),
                Err(LookupError::Io(error)) => Err(error.into()),
            }
        })
    }
}
