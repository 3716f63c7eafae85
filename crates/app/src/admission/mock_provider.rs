//! Admission of mock providers: only test keys may select one, and only an existing one. The engine
//! validates its configuration. Secrets in it are redacted here.

use crate::app::App;
use crate::error::{AppError, ForbiddenReason};
use tandem_access::Identity;
use tandem_record::Object;
use tandem_runtime::{MOCK_PROVIDER_KEY, MOCK_PROVIDERS};

/// A longer text is not a provider id.
const MAX_ID_CHARS: usize = 128;

impl App {
    /// Mock providers stand for models, and exist where runs may ask one: on hosts with a provider of models or
    /// with conformance tests.
    pub fn has_mock_providers(&self) -> bool {
        let runtime = self.runtime();
        runtime.has_conformance_types() || runtime.providers().advertised().next().is_some()
    }

    pub(crate) fn admit_mock_provider(
        &self,
        caller: &Identity,
        configurable: Option<&mut Object>,
    ) -> Result<(), AppError> {
        let Some(named) = configurable.and_then(|c| c.get_mut(MOCK_PROVIDER_KEY)) else {
            return Ok(());
        };
        if !self.has_mock_providers() {
            let place = format!("/configurable/{MOCK_PROVIDER_KEY}");
            return Err(AppError::invalid(place, "this host has no mock providers"));
        }
        let id = named["id"].as_str();
        if !caller.test_key {
            let requested = id.map(str::to_owned);
            return Err(ForbiddenReason::MockProvider { requested }.into());
        }
        let is_one = |id: &str| (1..=MAX_ID_CHARS).contains(&id.chars().count());
        match id {
            Some(id) if is_one(id) && !MOCK_PROVIDERS.contains(&id) => {
                Err(AppError::UnsupportedMockProvider(id.to_owned()))
            }
            _ => {
                self.runtime().redact_value(named);
                Ok(())
            }
        }
    }
}
