//! Path parameters, with our own error when they cannot be decoded.

use crate::problem::Problem;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

pub(crate) struct PathParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(read)) => Ok(Self(read)),
            // Decoding to text fails only if the escapes are not UTF-8.
            Err(_) => Err(Problem::invalid("path", "is not valid UTF-8")),
        }
    }
}
