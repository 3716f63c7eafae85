//! Additional advice for some problems.

use tandem_record::is_reserved_type;
use tandem_runtime::{Problem, advertised_types, nearest};

pub(super) fn for_problem(problem: &Problem) -> Option<String> {
    if let Some(found) = problem.reason.and_then(for_reason) {
        return Some(found.to_owned());
    }
    if let Some(type_id) = &problem.type_id {
        return Some(nearest_types(type_id));
    }
    let message = &problem.message;
    let advice = if message.contains("is a required property") {
        "Add it."
    } else if message.contains("Additional properties are not allowed") {
        "Remove the key, or correct its name."
    } else if message.contains("there is no node") {
        "Name a node of this document."
    } else if message.contains("is used twice") {
        "Rename one of them."
    } else {
        return None;
    };
    Some(advice.to_owned())
}

fn for_reason(reason: &str) -> Option<&'static str> {
    match reason {
        "cycle_detected" => Some("Remove an edge, or repeat through a core.loop node."),
        "expression_invalid" => Some(
            "Paths, literals, comparisons, && || !, in and parentheses are understood; roots are \
             inputs, variables, channels and nodes.<id>.outputs.",
        ),
        "typeId_refused" => Some("Use another node type: this one exists for conformance tests."),
        _ => None,
    }
}

/// The served types with the most similar names.
fn nearest_types(type_id: &str) -> String {
    match nearest(type_id, advertised_types()) {
        Some(found) => format!("Did you mean {found}?"),
        None => {
            let all: Vec<&str> = advertised_types().collect();
            let own = format!("This host serves {}", all.join(", "));
            match is_reserved_type(type_id) {
                true => format!("{own}."),
                false => {
                    format!("{own}; name the directory of the pack that brings it with --packs.")
                }
            }
        }
    }
}
