//! The secret that signs links.

use anyhow::Context as _;
use tandem_access::{LinkSigner, fresh_link_secret};
use tandem_store::SettingsStore;

/// Name of the setting.
const SECRET: &str = "links.secret";

/// The secret is generated once and stored, so that links stay valid after a restart.
pub(super) async fn signer(store: &(impl SettingsStore + ?Sized)) -> anyhow::Result<LinkSigner> {
    let secret = store.set_if_absent(SECRET, &fresh_link_secret()).await?;
    LinkSigner::from_stored(&secret).context("the stored secret for signed links is unusable")
}
