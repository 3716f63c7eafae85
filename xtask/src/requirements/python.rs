//! Citations in the Python tests: at the start of a check's label, before a colon, so that the
//! script's output contains the numbers.

use super::{Map, Test, cited};

/// A call that names a check; the label may be on the next line.
const CALL: &str = "check(";

pub(crate) fn scan(path: &str, text: &str, map: &mut Map) {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| lines[before]);
        match label(line, before) {
            Some(label) if !cited(label).is_empty() => {
                let test = Test::Python {
                    file: path.to_owned(),
                    label: label.to_owned(),
                };
                map.cite(label, &test);
            }
            _ => map.stray(path, at, line),
        }
    }
}

/// The label of the check on this line.
fn label<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let rest = match line.split_once(CALL) {
        Some((_, rest)) => rest,
        None if before.trim_end().ends_with(CALL) => line.trim_start(),
        None => return None,
    };
    rest.strip_prefix('"')?.split('"').next()
}
