//! The `Authorization` header.

use crate::Unauthenticated;

/// Longer credentials are refused without hashing them.
pub const MAX_CREDENTIAL_BYTES: usize = 512;

/// The credential of an `Authorization: Bearer …` header. Other schemes are refused: accepting
/// `Basic` would invite people to put passwords where keys belong.
pub fn bearer(header: Option<&str>) -> Result<&str, Unauthenticated> {
    let header = header.ok_or(Unauthenticated::Missing)?.trim();
    let (scheme, rest) = header.split_once(' ').ok_or(Unauthenticated::Malformed)?;
    let credential = rest.trim_start();
    if scheme.eq_ignore_ascii_case("bearer") && is_presentable(credential) {
        Ok(credential)
    } else {
        Err(Unauthenticated::Malformed)
    }
}

/// Whether a text can be sent as a bearer credential.
pub(crate) fn is_presentable(credential: &str) -> bool {
    !credential.is_empty()
        && credential.len() <= MAX_CREDENTIAL_BYTES
        && credential.bytes().all(|byte| byte.is_ascii_graphic())
}
