//! The guarded HTTP client: the only way out for nodes and webhooks.

use crate::guard::{Rejected, UrlGuard};
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls_platform_verifier::BuilderVerifierExt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The platform's trust store or TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be built: {0}")]
pub struct ClientError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// A client that resolves through the guard, follows no redirect, uses no proxy and retries
/// nothing. It checks only the addresses of names: the caller passes every URL through
/// [`UrlGuard::check_url`] first, because a literal address is never resolved.
pub fn guarded_client(
    guard: Arc<UrlGuard>,
    connect_timeout: Duration,
) -> Result<reqwest::Client, ClientError> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .dns_resolver(Arc::new(GuardedResolver::new(guard)))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| ClientError(error.into()))
}

/// The TLS of every client. Reading the platform's certificates takes milliseconds, so it is done once.
fn tls() -> Result<rustls::ClientConfig, ClientError> {
    static SHARED: Mutex<Option<rustls::ClientConfig>> = Mutex::new(None);
    let mut shared = SHARED.lock();
    if let Some(config) = &*shared {
        return Ok(config.clone());
    }
    // An error means that a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = rustls::ClientConfig::builder()
        .with_platform_verifier()
        .map_err(|error| ClientError(error.into()))?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(shared.insert(config).clone())
}

/// Resolves a name once and gives exactly the checked addresses to the connector. There is no
/// second resolution that a rebinding name could answer differently.
pub struct GuardedResolver {
    guard: Arc<UrlGuard>,
}

impl GuardedResolver {
    pub fn new(guard: Arc<UrlGuard>) -> Self {
        Self { guard }
    }

    /// All or nothing: a name with both public and private addresses is suspicious, and the
    /// connector could choose the private one.
    pub(crate) fn vet(&self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Rejected> {
        for address in &addresses {
            self.guard.check_ip(address.ip())?;
        }
        Ok(addresses)
    }

    pub(crate) async fn lookup(&self, name: &str) -> Result<Vec<SocketAddr>, LookupError> {
        // With port 0 the connector uses the URL's port.
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
                // Not wrapped, so that a rejection can be found in the client's error.
                Err(LookupError::Rejected(rejected)) => Err(rejected.into()),
                Err(LookupError::Io(error)) => Err(error.into()),
            }
        })
    }
}
