//! What a client may count on when it tests: models it need not pay for, and the keys that may ask for
//! them.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub struct TestingCapabilities<'a> {
    /// Mock providers a run may name.
    pub mock_providers: &'a [&'a str],
    /// How keys begin that may name one.
    pub test_key_prefix: &'a str,
}

pub(super) fn document(testing: &TestingCapabilities<'_>) -> Value {
    json!({
        "mockProviders": testing.mock_providers,
        "testKeyPrefix": testing.test_key_prefix,
    })
}
