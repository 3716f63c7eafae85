use crate::{MAX_CREDENTIAL_BYTES, Unauthenticated, bearer};

#[test]
fn only_a_bearer_header_with_one_credential_is_read() {
    use Unauthenticated::{Malformed, Missing};
    let longest = "k".repeat(MAX_CREDENTIAL_BYTES);
    let fits = format!("Bearer {longest}");
    let too_long = format!("Bearer {longest}k");
    let table: &[(Option<&str>, Result<&str, Unauthenticated>)] = &[
        (None, Err(Missing)),
        (Some("Bearer tdm_live_abc"), Ok("tdm_live_abc")),
        (Some("bearer tdm_live_abc"), Ok("tdm_live_abc")),
        (Some("BEARER   tdm_live_abc  "), Ok("tdm_live_abc")),
        (Some(&fits), Ok(&longest)),
        (Some(&too_long), Err(Malformed)),
        (Some(""), Err(Malformed)),
        (Some("Bearer"), Err(Malformed)),
        (Some("Bearer "), Err(Malformed)),
        (Some("Bearer a b"), Err(Malformed)),
        (Some("Bearer a\tb"), Err(Malformed)),
        (Some("Bearer schlüssel"), Err(Malformed)),
        (Some("Basic dXNlcjpwYXNz"), Err(Malformed)),
        (Some("Token abc"), Err(Malformed)),
        (Some("Bearertdm_live_abc"), Err(Malformed)),
        (Some("tdm_live_abc"), Err(Malformed)),
    ];
    for (header, expected) in table {
        assert_eq!(bearer(*header), *expected, "{header:?}");
    }
}
