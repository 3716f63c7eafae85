//! Callback URLs of runs: the host calls them, so they are vetted like targets of webhooks. The URL is stored
//! with the run, so it must not hold a secret.

use crate::app::App;
use crate::error::AppError;
use tandem_access::{Identity, Scope};
use tandem_record::RunRequest;
use url::Url;

impl App {
    /// Vets the callback of a new run. A host without webhooks calls nothing.
    pub(crate) async fn admit_callback(
        &self,
        caller: &Identity,
        request: &mut RunRequest,
    ) -> Result<(), AppError> {
        let runtime = self.runtime();
        let (Some(url), Some(webhook_sender)) = (&request.callback_url, runtime.webhook_sender())
        else {
            return Ok(());
        };
        let vetted = webhook_sender.vet(url).await;
        vetted.map_err(AppError::UrlRejected)?;
        if !runtime.is_free_of_secrets(url) {
            let message = "holds what looks like a secret; it would not be kept";
            return Err(AppError::invalid("/callbackUrl", message));
        }
        request.callback_may_answer = caller.require_scope(Scope::ApprovalsRespond).is_ok();
        Ok(())
    }
}

pub(crate) fn is_web_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
