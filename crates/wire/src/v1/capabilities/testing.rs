//! What clients can use for tests: mock providers, and the keys that may select them.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub struct TestingCapabilities<'a> {
    /// Mock providers that a run may select.
    pub mock_providers: &'a [&'a str],
    /// Prefix of keys that may select one.
    pub test_key_prefix: &'a str,
}

pub(super) fn document(testing: &TestingCapabilities<'_>) -> Value {
    json!({
        "mockProviders": testing.mock_providers,
        "testKeyPrefix": testing.test_key_prefix,
    })
}
