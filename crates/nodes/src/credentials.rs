//! Credentials in the headers of a call, so that they can be masked in its response.
//!
//! A service may echo the request, especially in an error page. The echo would be stored in the log
//! of the run.

use reqwest::header::HeaderMap;
use std::borrow::Cow;

const MASK: &str = "[REDACTED]";

/// Shorter values are not masked: masking every `1` in a response hides nothing and makes it
/// useless.
const MIN_MASKED_BYTES: usize = 8;

const CREDENTIAL_HEADERS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "x-auth-token",
];

pub(crate) fn is_credential_header(lower_case_name: &str) -> bool {
    CREDENTIAL_HEADERS.contains(&lower_case_name)
}

/// Has no `Debug`, and is dropped with the call.
pub(crate) struct Credentials(Vec<String>);

impl Credentials {
    pub(crate) fn sent_in(headers: &HeaderMap) -> Self {
        let mut values: Vec<_> = headers
            .iter()
            .filter(|(name, _)| is_credential_header(name.as_str()))
            .filter_map(|(_, value)| value.to_str().ok())
            // The value, and the part after its scheme: `Bearer x` may be echoed as `x`.
            .flat_map(|value| [Some(value), value.split_once(' ').map(|(_, rest)| rest)])
            .flatten()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= MIN_MASKED_BYTES)
            .collect();
        // Longest first, so that masking a part does not prevent masking the whole.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The length of the longest credential, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }

    pub(crate) fn mask<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        self.0.iter().fold(text.into(), |text, value| {
            if text.contains(value.as_str()) {
                Cow::Owned(text.replace(value.as_str(), MASK))
            } else {
                text
            }
        })
    }
}
