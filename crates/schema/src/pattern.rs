//! Patterns that match in linear time, and what they cost.

use crate::limits::{MAX_PATTERN_BYTES, MAX_PATTERN_TEXT, PATTERN_STEP};
use crate::refused::Refused;
use regex_automata::nfa::thompson::{Compiler, NFA};

#[derive(Debug, Clone, Copy)]
pub(crate) struct PatternCost {
    /// Work for one byte of text, at worst.
    pub(crate) work: u64,
    /// Size of the compiled pattern.
    pub(crate) bytes: usize,
}

/// Compiles a pattern to learn what it costs. Nothing of it is kept: the validator compiles it again
/// in its own way, under the same size limit.
pub(crate) fn check(pattern: &str, at: &str) -> Result<PatternCost, Refused> {
    let shown = shorten(pattern);
    if pattern.len() > MAX_PATTERN_TEXT {
        let message = format!("the pattern {shown:?} has more than {MAX_PATTERN_TEXT} bytes");
        return Err(Refused::new(at, message));
    }
    if let Some(what) = not_linear(pattern) {
        let message = format!(
            "the pattern {shown:?} uses {what}, which cannot be matched in linear time; write it \
             without, for example as several schemas under \"allOf\" or \"not\""
        );
        return Err(Refused::new(at, message));
    }
    let unusable = || {
        let message = format!("the pattern {shown:?} is not a regular expression of this host");
        Refused::new(at, message)
    };
    let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| unusable())?;
    let config = NFA::config().nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let built = Compiler::new().configure(config).build(&translated);
    let nfa = built.map_err(|error| match error.size_limit() {
        Some(limit) => {
            let message = format!(
                "the pattern {shown:?} has more than {limit} bytes when compiled; use smaller \
                 repetitions, or \"maxLength\" beside it"
            );
            Refused::new(at, message)
        }
        None => unusable(),
    })?;
    let states = u64::try_from(nfa.states().len()).unwrap_or(u64::MAX);
    Ok(PatternCost {
        work: states.saturating_mul(PATTERN_STEP),
        bytes: nfa.memory_usage(),
    })
}

/// What a pattern uses that only a backtracking engine understands.
fn not_linear(pattern: &str) -> Option<&'static str> {
    let bytes = pattern.as_bytes();
    let mut in_class = false;
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        match bytes[i] {
            b'\\' => {
                match rest.get(1) {
                    Some(b'1'..=b'9') if !in_class => return Some("a back-reference"),
                    Some(b'k') if rest.get(2) == Some(&b'<') => return Some("a back-reference"),
                    _ => {}
                }
                i += 1;
            }
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let around: [&[u8]; 4] = [b"(?=", b"(?!", b"(?<=", b"(?<!"];
                if around.iter().any(|opening| rest.starts_with(opening)) {
                    return Some("look-around");
                }
                if rest.starts_with(b"(?>") {
                    return Some("an atomic group");
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

/// A pattern as it is quoted in a message.
fn shorten(pattern: &str) -> String {
    match pattern.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &pattern[..cut]),
        None => pattern.to_owned(),
    }
}
