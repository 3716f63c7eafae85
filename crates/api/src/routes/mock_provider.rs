//! Admission of mock providers: only test keys may select one, and only an existing one. The engine
//! validates its configuration. Secrets in it are redacted here.

use crate::problem::Problem;
use tandem_access::Identity;
use tandem_record::Object;
use tandem_runtime::{MOCK_PROVIDER_KEY, MOCK_PROVIDERS, Runtime};

/// A longer text is not a provider id.
const MAX_ID_CHARS: usize = 128;

pub(super) fn admit(
    runtime: &Runtime,
    caller: &Identity,
    configurable: Option<&mut Object>,
) -> Result<(), Problem> {
    let Some(named) = configurable.and_then(|c| c.get_mut(MOCK_PROVIDER_KEY)) else {
        return Ok(());
    };
    let id = named["id"].as_str();
    if !caller.test_key {
        return Err(Problem::mock_provider_forbidden(id));
    }
    let is_one = |id: &str| (1..=MAX_ID_CHARS).contains(&id.chars().count());
    match id {
        Some(id) if is_one(id) && !MOCK_PROVIDERS.contains(&id) => {
            Err(Problem::unsupported_mock_provider(id))
        }
        _ => {
            runtime.redact_value(named);
            Ok(())
        }
    }
}
