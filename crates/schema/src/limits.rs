//! How large a schema may be, and what its evaluation may cost.

use crate::refusal::SchemaRefusal;

/// Maximum work of one evaluation. At worst about a second in an optimised build.
pub const MAX_WORK: u64 = 1_000_000_000;
/// Maximum work of a schema for one value of an instance, without its children.
pub(crate) const MAX_VALUE_WORK: u64 = 2_000_000;
/// Levels of a recursive schema that are checked against [`MAX_VALUE_WORK`] when it is compiled.
/// The real depth of an instance is known only when it is evaluated.
pub(crate) const CHECKED_LEVELS: usize = 4;
/// Maximum work for collecting errors. Every error costs at least [`KEYWORD`], so this limits their
/// number.
pub(crate) const MAX_ERROR_WORK: u64 = 8_000_000;
/// Levels of an instance. JSON is read to 127 levels.
pub(crate) const MAX_INSTANCE_DEPTH: usize = 128;
/// Schemas applied inside each other at the deepest point of an evaluation: limits the stack.
pub(crate) const MAX_STACK: u64 = 600;

/// Levels of the schema document.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 100;
/// Schemas applied to one value inside each other, through references and combinators.
pub(crate) const MAX_CHAIN: usize = 64;
/// Length of one pattern in bytes, as it is written.
pub(crate) const MAX_PATTERN_TEXT: usize = 16 * 1024;
/// Size of one compiled pattern in bytes.
pub(crate) const MAX_PATTERN_BYTES: usize = 2 * 1024 * 1024;
/// Maximum size of the backward matcher, which may be larger than what was measured.
pub(crate) const MAX_BACKWARD_BYTES: usize = 8 * MAX_PATTERN_BYTES;
/// Memory that one pattern may use to match faster, for each thread that matches.
pub(crate) const PATTERN_CACHE_BYTES: usize = 256 * 1024;

/// Patterns of one document.
pub const MAX_PATTERNS: usize = 256;
const MAX_SUBSCHEMAS: usize = 5_000;
const MAX_SCHEMA_BYTES: usize = 512 * 1024;
const MAX_ALL_PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// Work of evaluating one keyword.
pub(crate) const KEYWORD: u64 = 32;
/// Work of one step of a pattern: one state, one byte.
pub(crate) const PATTERN_STEP: u64 = 4;

/// What the schemas of one document may still use together.
#[derive(Debug)]
pub struct Budget {
    subschemas: usize,
    schema_bytes: usize,
    patterns: usize,
    pattern_bytes: usize,
    /// The patterns together were too large: no further pattern is compiled.
    patterns_too_large: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            subschemas: MAX_SUBSCHEMAS,
            schema_bytes: MAX_SCHEMA_BYTES,
            patterns: MAX_PATTERNS,
            pattern_bytes: MAX_ALL_PATTERN_BYTES,
            patterns_too_large: false,
        }
    }
}

impl Budget {
    pub(crate) fn take_schema_bytes(&mut self, bytes: usize) -> Result<(), SchemaRefusal> {
        let message = format!("the schemas of one document have at most {MAX_SCHEMA_BYTES} bytes");
        take(&mut self.schema_bytes, bytes, "", message)
    }

    pub(crate) fn take_subschema(&mut self, at: &str) -> Result<(), SchemaRefusal> {
        let message = format!("the schemas of one document have at most {MAX_SUBSCHEMAS} parts");
        take(&mut self.subschemas, 1, at, message)
    }

    pub(crate) fn take_pattern(&mut self, at: &str) -> Result<(), SchemaRefusal> {
        if self.patterns_too_large {
            return Err(SchemaRefusal::new(at, too_large_patterns()));
        }
        let message =
            format!("one document has at most {MAX_PATTERNS} patterns; leave out or merge some");
        take(&mut self.patterns, 1, at, message)
    }

    pub(crate) fn take_pattern_bytes(
        &mut self,
        bytes: usize,
        at: &str,
    ) -> Result<(), SchemaRefusal> {
        let taken = take(&mut self.pattern_bytes, bytes, at, too_large_patterns());
        self.patterns_too_large |= taken.is_err();
        taken
    }
}

fn too_large_patterns() -> String {
    format!(
        "the patterns of one document are too large together, at most {MAX_ALL_PATTERN_BYTES} \
         bytes when compiled; use smaller repetitions and fewer Unicode classes"
    )
}

fn take(left: &mut usize, amount: usize, at: &str, message: String) -> Result<(), SchemaRefusal> {
    match left.checked_sub(amount) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(SchemaRefusal::new(at, message)),
    }
}
