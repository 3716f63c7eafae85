//! The ways a secret is commonly written when it is not written as it is: in JSON, in a URL, in HTML, in
//! base64, in hex. Each is one more literal to look for; none is decoded.

use serde_json::Value;
use std::collections::BTreeSet;

/// JSON as text within JSON as text, so deep.
const JSON_LEVELS: usize = 3;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters besides letters and digits that stay as they are, by who encodes: RFC 3986,
/// `encodeURIComponent`, paths, `encodeURI`, form data, and whoever encodes every byte.
const UNESCAPED: [Option<&str>; 6] = [
    Some("-_.~"),
    Some("-_.~!*'()"),
    Some("-_.~/"),
    Some("-_.~!*'();,/?:@&=+$#"),
    Some("-_.*"),
    None,
];
/// How `"` and `'` are written in HTML; `&`, `<` and `>` have one common form each.
const HTML_QUOTES: [(&str, &str); 8] = [
    ("\"", "'"),
    ("&quot;", "'"),
    ("&quot;", "&#39;"),
    ("&quot;", "&#039;"),
    ("&#034;", "&#039;"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&apos;"),
    ("&#34;", "&#39;"),
];

/// Which characters of an HTML text are written as references, by who encodes: those with a meaning, these and
/// everything outside of ASCII, everything but letters and digits, everything.
const HTML_REFERENCED: [fn(char) -> bool; 4] = [
    |c| "&<>\"'".contains(c),
    |c| "&<>\"'".contains(c) || !c.is_ascii(),
    |c| !c.is_ascii_alphanumeric(),
    |_| true,
];
/// How a reference to a character is written.
const HTML_REFERENCES: [fn(u32) -> String; 5] = [
    |code| format!("&#{code};"),
    |code| format!("&#{code:03};"),
    |code| format!("&#x{code:x};"),
    |code| format!("&#x{code:X};"),
    |code| format!("&#X{code:X};"),
];

/// As a string within JSON that is itself a text.
pub(super) fn json(secret: &str) -> String {
    let quoted = Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// All other forms, without those that are the secret itself or its form in JSON.
pub(super) fn all(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let mut nested = secret.to_owned();
    for _ in 0..JSON_LEVELS {
        nested = json(&nested);
        forms.insert(nested.clone());
        forms.insert(nested.replace('/', "\\/"));
    }
    for upper in [false, true] {
        let non_ascii = json_ascii(secret, upper);
        forms.insert(non_ascii.replace('/', "\\/"));
        forms.insert(json(&non_ascii));
        forms.insert(non_ascii);
        forms.insert(secret.chars().map(|c| utf16_escape(c, upper)).collect());
        forms.extend(UNESCAPED.map(|kept| percent(secret, kept, upper)));
        forms.insert(secret.bytes().map(|byte| hex(byte, upper)).collect());
    }
    let plus: Vec<String> = forms
        .iter()
        .filter(|form| form.contains("%20"))
        .cloned()
        .collect();
    forms.extend(plus.iter().map(|form| form.replace("%20", "+")));
    forms.extend(HTML_QUOTES.map(|(double, single)| html(secret, double, single)));
    for is_referenced in HTML_REFERENCED {
        forms.extend(HTML_REFERENCES.map(|write| html_references(secret, is_referenced, write)));
    }
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

/// `kept` stays with letters and digits; without it nothing does.
fn percent(secret: &str, kept: Option<&str>, upper: bool) -> String {
    let stays = |byte: u8| {
        kept.is_some_and(|kept| byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte))
    };
    let mut form = String::new();
    for byte in secret.bytes() {
        match stays(byte) {
            true => form.push(char::from(byte)),
            false => form.extend(["%", &hex(byte, upper)]),
        }
    }
    form
}

fn hex(byte: u8, upper: bool) -> String {
    match upper {
        true => format!("{byte:02X}"),
        false => format!("{byte:02x}"),
    }
}

fn html(secret: &str, double: &str, single: &str) -> String {
    secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', single)
        .replace('"', double)
}

fn html_references(
    secret: &str,
    is_referenced: fn(char) -> bool,
    write: fn(u32) -> String,
) -> String {
    let character = |c: char| match is_referenced(c) {
        true => write(u32::from(c)),
        false => c.to_string(),
    };
    secret.chars().map(character).collect()
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
