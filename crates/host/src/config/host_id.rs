//! The protocol name of this host. Other hosts identify runs by it, so two installations must not
//! share one by accident.

use crate::failure::Failure;
use url::Url;

const MAX_CHARS: usize = 128;

/// A plain name, a name in a domain with or without a path, or an https URL.
pub(super) fn check(id: String) -> Result<String, Failure> {
    if id.len() <= MAX_CHARS && (is_name(&id) || is_url(&id)) {
        return Ok(id);
    }
    Err(Failure::new(
        format!("the host id {id:?} cannot be used"),
        "Write it like desk-1, example.com/runtime or https://example.com/runtime: up to 128 letters, \
         digits, hyphens, dots, underscores and slashes, beginning with a letter or digit.",
    ))
}

fn is_name(id: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/');
    id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !id.contains("//")
        && !id.contains("..")
        && id.chars().all(inside)
}

/// Without credentials and query.
fn is_url(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '"' | '<' | '>');
    Url::parse(id).is_ok_and(|url| {
        url.scheme() == "https"
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    }) && id.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_id_is_a_name_a_domain_with_path_or_a_url() {
        // R-0040-14 (half: what an operator may choose)
        let long = format!("example.com/{}", "a".repeat(116));
        for good in [
            "eu-west-1",
            "example.com",
            "example.com/runtime",
            "2.example.com/a/b",
            "Host_1.a",
            "https://example.com",
            "https://example.com:8443/runtime/",
            &long,
        ] {
            assert_eq!(check(good.to_owned()).unwrap(), good);
        }
        let longer = format!("{long}a");
        for bad in [
            "",
            "My Host",
            "-a",
            "a-",
            "/a",
            "a/",
            "a//b",
            "a?b",
            "a..b",
            "ä",
            "http://example.com",
            "https://me:key@example.com",
            "https://example.com?x=1",
            "https://example.com/#a",
            "https://exa mple.com",
            "https://",
            &longer,
        ] {
            assert!(check(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
