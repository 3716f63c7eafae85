//! Patterns that match in linear time, and their cost.

use crate::limits::{
    Budget, MAX_BACKWARD_BYTES, MAX_PATTERN_BYTES, MAX_PATTERN_TEXT, MAX_WORK, PATTERN_CACHE_BYTES,
    PATTERN_STEP,
};
use crate::meter::Meter;
use crate::refusal::SchemaRefusal;
use crate::schema::ValidationFailure;
use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{Compiler, NFA};

#[derive(Debug, Clone, Copy)]
pub(crate) struct PatternCost {
    /// Work for one byte of text, at worst.
    pub(crate) work: u64,
    /// Size of the compiled pattern.
    pub(crate) bytes: usize,
}

/// Compiles a pattern to measure its cost. The result is discarded: the validator compiles it again
/// in its own way, under the same size limit.
pub(crate) fn check(pattern: &str, at: &str) -> Result<PatternCost, SchemaRefusal> {
    let shown = shorten(pattern);
    if pattern.len() > MAX_PATTERN_TEXT {
        let message = format!("the pattern {shown:?} has more than {MAX_PATTERN_TEXT} bytes");
        return Err(SchemaRefusal::new(at, message));
    }
    if let Some(what) = not_linear(pattern) {
        let message = format!(
            "the pattern {shown:?} uses {what}, which cannot be matched in linear time; write it \
             without, for example as several schemas under \"allOf\" or \"not\""
        );
        return Err(SchemaRefusal::new(at, message));
    }
    let unusable = || {
        let message = format!("the pattern {shown:?} is not a regular expression of this host");
        SchemaRefusal::new(at, message)
    };
    let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| unusable())?;
    measure(&translated).map_err(|message| match message {
        Some(message) => SchemaRefusal::new(at, message),
        None => unusable(),
    })
}

/// `None` instead of a message when it is not a regular expression.
fn measure(pattern: &str) -> Result<PatternCost, Option<String>> {
    let config = NFA::config().nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let built = Compiler::new().configure(config).build(pattern);
    let nfa = built.map_err(|error| {
        error.size_limit().map(|limit| {
            let shown = shorten(pattern);
            format!(
                "the pattern {shown:?} has more than {limit} bytes when compiled; use smaller \
                 repetitions"
            )
        })
    })?;
    let states = u64::try_from(nfa.states().len()).unwrap_or(u64::MAX);
    Ok(PatternCost {
        work: states.saturating_mul(PATTERN_STEP),
        bytes: nfa.memory_usage(),
    })
}

/// A pattern outside of schemas, in the syntax of the `regex` crate. It counts towards the limits
/// of its document.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    /// Work for one byte of text, at worst.
    work: u64,
    bytes: usize,
}

impl Pattern {
    /// Without a budget for a document that was accepted before there was one.
    pub fn compile(pattern: &str, mut budget: Option<&mut Budget>) -> Result<Self, SchemaRefusal> {
        if let Some(budget) = &mut budget {
            budget.take_pattern("")?;
        }
        let unusable = |why: String| SchemaRefusal::new("", format!("not a usable pattern: {why}"));
        let cost = measure(pattern).map_err(|why| {
            let syntax = || Regex::new(pattern).err().map(|error| error.to_string());
            unusable(why.or_else(syntax).unwrap_or_default())
        })?;
        if let Some(budget) = budget {
            budget.take_pattern_bytes(cost.bytes, "")?;
        }
        let regex = RegexBuilder::new(pattern)
            .size_limit(MAX_BACKWARD_BYTES)
            .dfa_size_limit(PATTERN_CACHE_BYTES)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            regex,
            work: cost.work,
            bytes: cost.bytes,
        })
    }

    /// Approximate bytes of memory it takes.
    pub fn weight(&self) -> usize {
        4 * self.bytes + PATTERN_CACHE_BYTES / 8
    }

    pub fn matches(&self, text: &str, meter: &Meter) -> Result<bool, ValidationFailure<()>> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let work = self.work.saturating_mul(bytes);
        if work > MAX_WORK {
            meter.refuse();
            return Err(ValidationFailure::TooMuchWork);
        }
        if !meter.try_spend(work) {
            return Err(ValidationFailure::Deferred);
        }
        Ok(self.regex.is_match(text))
    }
}

/// Syntax in a pattern that only a backtracking engine supports.
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
