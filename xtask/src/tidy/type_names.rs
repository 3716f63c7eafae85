//! Public type names are unique in the workspace, so that a search finds one definition. A name that
//! appears twice must be listed in [`SHARED`] with a reason.

use super::Findings;
use super::tracked::Tracked;
use std::collections::BTreeMap;

/// Names that more than one place may define, and why.
const SHARED: &[(&str, &str)] = &[(
    "Decision",
    "`run::Decision` is `machine::Decision` of a run",
)];

const KINDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "union "];

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in &files.all {
        let is_library = file.path.starts_with("crates/") && file.path.ends_with(".rs");
        if !is_library || file.path.contains("/tests") || file.path.contains("/examples/") {
            continue;
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(name) = defined_type(line) {
                places
                    .entry(name)
                    .or_default()
                    .push(format!("{}:{number}", file.path));
            }
        }
    }
    for (name, places) in &places {
        let shared = SHARED.iter().any(|(shared, _)| shared == name);
        if places.len() > 1 && !shared {
            let message = format!("public type {name} is also defined in {}", places[0]);
            findings.error(&places[1], message);
        }
    }
    for (name, _) in SHARED {
        if places.get(name).is_none_or(|places| places.len() < 2) {
            findings.error(file!(), format!("{name} is listed as shared and is not"));
        }
    }
}

/// The type that a line defines with full visibility. Associated types of traits have none.
fn defined_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fully_public_types_count() {
        assert_eq!(defined_type("pub struct Run {"), Some("Run"));
        assert_eq!(defined_type("    pub enum Status<T> {"), Some("Status"));
        assert_eq!(defined_type("pub type Render = u8;"), Some("Render"));
        assert_eq!(defined_type("pub(crate) struct Hidden;"), None);
        assert_eq!(defined_type("pub fn struct_of()"), None);
    }
}
