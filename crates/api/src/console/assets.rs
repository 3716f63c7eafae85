//! The console's static files. Their URLs contain a content hash, so a browser may cache them
//! forever.

use super::page::PageError;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tandem_console::asset;

pub(super) async fn file(
    PathParams(name): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    Ok(asset_response(&name, &params, &headers)?)
}

/// A file as a response.
pub(crate) fn asset_response(
    name: &str,
    params: &Params,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let asset = asset(name).ok_or_else(|| Problem::not_found("file"))?;
    // Only a URL with the hash of this content may be cached without revalidation.
    let cache_control = if params.get("v") == Some(asset.etag.trim_matches('"')) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let is_unchanged = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|tag| tag.as_bytes() == asset.etag.as_bytes());
    let common = [
        (header::CACHE_CONTROL, cache_control.to_owned()),
        (header::ETAG, asset.etag),
        (header::CONTENT_TYPE, asset.content_type.to_owned()),
    ];
    if is_unchanged {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    Ok((common, asset.body).into_response())
}
