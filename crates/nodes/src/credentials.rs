//! Credentials a call carries in its headers, so that they can be kept out of what comes back.
//!
//! A service may echo what it was sent, in an error page above all. What it echoes would end up
//! in the log of the run.

use reqwest::header::HeaderMap;
use std::borrow::Cow;

const MASK: &str = "[REDACTED]";

/// Shorter values are left alone: masking every `1` in a response hides nothing and ruins it.
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

/// Has no `Debug`, and lives no longer than the call.
pub(crate) struct Credentials(Vec<String>);

impl Credentials {
    pub(crate) fn sent_in(headers: &HeaderMap) -> Self {
        let mut values: Vec<_> = headers
            .iter()
            .filter(|(name, _)| is_credential_header(name.as_str()))
            .filter_map(|(_, value)| value.to_str().ok())
            // The value, and what follows its scheme: `Bearer x` may come back as `x`.
            .flat_map(|value| [Some(value), value.split_once(' ').map(|(_, rest)| rest)])
            .flatten()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= MIN_MASKED_BYTES)
            .collect();
        // Longest first, so that masking a part does not hide the whole from its own mask.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The length of the longest, in bytes.
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
