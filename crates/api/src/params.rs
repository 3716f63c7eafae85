//! Query parameters, read one by one, so that each route decides when to report errors: a run is
//! looked up before errors in parameters are reported.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use std::num::IntErrorKind;
use std::ops::RangeInclusive;

pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Ok(Self(pairs.into_owned().collect()))
    }
}

impl Params {
    /// The first value under a name; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|v| !v.is_empty())
    }

    /// The value of a filter. An empty one is refused: taken as absent, it would select everything.
    pub(crate) fn filled(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.iter().find(|(n, _)| n == name) {
            Some((_, value)) if value.is_empty() => {
                Err(Problem::invalid(name, "must not be empty"))
            }
            found => Ok(found.map(|(_, value)| value.clone())),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number(
        &self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = match text.parse::<u64>() {
            Ok(number) => Some(number),
            // A number too large to parse is treated as the largest one.
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
            Err(_) => None,
        };
        let number = number.filter(|n| bounds.contains(n));
        number.map(Some).ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            let message = if *high == u64::MAX {
                format!("must be a whole number of at least {low}")
            } else {
                format!("must be a whole number from {low} to {high}")
            };
            Problem::invalid(name, message)
        })
    }

    /// Refuses unknown parameters: ignoring a filter would return a wrong result.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        let unknown = self.0.iter().find(|(n, _)| !known.contains(&n.as_str()));
        match unknown {
            Some((name, _)) => {
                let message = format!("is not a parameter here; known are {}", known.join(", "));
                Err(Problem::invalid(name, message))
            }
            None => Ok(()),
        }
    }
}
