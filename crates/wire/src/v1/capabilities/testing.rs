//! What clients can use for tests: mock providers, and the keys that may select them.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub struct TestingCapabilities<'a> {
    /// Mock providers that a run may select; none where no node of this host asks a model.
    pub mock_providers: &'a [&'a str],
    /// Prefix of keys that may select one.
    pub test_key_prefix: &'a str,
}

pub(super) fn document(testing: &TestingCapabilities<'_>) -> Value {
    let mut document = json!({"testKeyPrefix": testing.test_key_prefix});
    if !testing.mock_providers.is_empty() {
        document["mockProviders"] = json!(testing.mock_providers);
    }
    document
}
