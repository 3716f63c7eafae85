//! Secrets from the host's configuration, by id. Their values are only used for a proof
//! ([`Secrets::echo`]) and by the redactor, which must search for them.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use tandem_record::{EffectOutcome, ErrorInfo, Object};

#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Only for the redactor.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(id, value)| (id.as_str(), value.as_str()))
    }

    /// Output of the test-only node `conformance.secret.echo`: proof that the secret was resolved,
    /// without the secret. Two names for each value, because hosts have used both.
    pub fn echo(&self, secret_id: &str) -> EffectOutcome {
        let Some(value) = self.0.get(secret_id) else {
            return unknown(secret_id);
        };
        let hash: String = Sha256::digest(value)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        EffectOutcome::Done {
            outputs: Object::from_iter([
                ("secretSha256".to_owned(), json!(hash)),
                ("secretLength".to_owned(), json!(value.len())),
                ("sha256".to_owned(), json!(hash)),
                ("byteLength".to_owned(), json!(value.len())),
            ]),
        }
    }
}

impl Secrets {
    /// The secret itself, for the test-only node that tries to write it into memory. The test
    /// checks that the redactor removes it.
    pub(crate) fn reveal(&self, secret_id: &str) -> EffectOutcome {
        match self.0.get(secret_id) {
            Some(value) => EffectOutcome::Done {
                outputs: Object::from_iter([("secret".to_owned(), json!(value))]),
            },
            None => unknown(secret_id),
        }
    }
}

fn unknown(secret_id: &str) -> EffectOutcome {
    let message = format!("The secret `{secret_id}` is not configured on this host.");
    EffectOutcome::Failed {
        error: ErrorInfo::new("credential_unavailable", message),
    }
}

impl FromIterator<(String, String)> for Secrets {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(secrets: T) -> Self {
        Self(secrets.into_iter().collect())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")?;
        f.debug_set().entries(self.0.keys()).finish()
    }
}
