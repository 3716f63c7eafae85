//! The ways a secret is commonly written when it is not written as it is: in JSON, in base64, in hex. Each is
//! one more literal to look for; none is decoded. URLs and HTML have too many ways ([`super::decoded`]).

use serde_json::Value;
use std::collections::BTreeSet;

/// JSON as text within JSON as text, so deep.
const JSON_LEVELS: usize = 3;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// As a string within JSON that is itself a text.
pub(super) fn json(secret: &str) -> String {
    let quoted = Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// All other forms, without those that are the secret itself or its form in JSON.
pub(super) fn all(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    // Any level may escape what is not ASCII, or everything.
    let mut levels = BTreeSet::from([secret.to_owned()]);
    for _ in 0..JSON_LEVELS {
        let nested = levels.iter().flat_map(|text| {
            let ascii = [false, true].map(|upper| json_ascii(text, upper));
            ascii.into_iter().chain([json(text)])
        });
        let nested: BTreeSet<String> = nested.collect();
        let slashes = nested.iter().map(|form| form.replace('/', "\\/"));
        levels = slashes.chain(nested.iter().cloned()).collect();
        forms.extend(levels.iter().cloned());
    }
    for upper in [false, true] {
        let mut nested: String = secret.chars().map(|c| utf16_escape(c, upper)).collect();
        for _ in 0..JSON_LEVELS {
            forms.insert(nested.clone());
            nested = json(&nested);
        }
        forms.insert(secret.bytes().map(|byte| hex(byte, upper)).collect());
    }
    // Form data without any escape.
    forms.insert(secret.replace(' ', "+"));
    for offset in 0..3 {
        let standard = base64(secret.as_bytes(), offset);
        forms.insert(standard.replace('+', "-").replace('/', "_"));
        forms.insert(standard);
    }
    forms.remove(secret);
    forms.remove(&json(secret));
    forms
}

/// The form in JSON that is ASCII alone.
fn json_ascii(secret: &str, upper: bool) -> String {
    json(secret)
        .chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => utf16_escape(c, upper),
        })
        .collect()
}

fn utf16_escape(c: char, upper: bool) -> String {
    let mut units = [0; 2];
    let escape = |unit: &mut u16| match upper {
        true => format!("\\u{unit:04X}"),
        false => format!("\\u{unit:04x}"),
    };
    c.encode_utf16(&mut units).iter_mut().map(escape).collect()
}

fn hex(byte: u8, upper: bool) -> String {
    match upper {
        true => format!("{byte:02X}"),
        false => format!("{byte:02x}"),
    }
}

/// The characters that depend on the secret alone when it begins `offset` bytes after a group of three.
/// Those at its ends also hold bits of what stands beside it, and are left out. A secret of eight bytes
/// has ten or more.
fn base64(secret: &[u8], offset: usize) -> String {
    let bit = |at: usize| {
        let byte = secret[at / 8 - offset];
        usize::from(byte >> (7 - at % 8) & 1)
    };
    let first = (offset * 8).div_ceil(6);
    let end = (offset + secret.len()) * 8 / 6;
    let sextet = |at: usize| (at * 6..at * 6 + 6).fold(0, |bits, at| bits << 1 | bit(at));
    let characters = (first..end).map(|at| char::from(BASE64[sextet(at)]));
    characters.collect()
}
