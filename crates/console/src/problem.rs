//! The error page: what happened, and what to do next.

use maud::html;

use crate::chrome::{Chrome, Section, page};
use crate::links;

pub fn error_page(
    chrome: &Chrome,
    status: u16,
    title: &str,
    message: &str,
    next_step: &str,
) -> String {
    let body = html! {
        div.narrow {
            p.eyebrow { "Error " (status) }
            h1 { (title) }
            section.panel.pad {
                p { (message) }
                p { strong { "What to do: " } (next_step) }
            }
            p { a href=(links::RUNS) { "Back to runs" } }
        }
    };
    page(chrome, Section::None, title, &body)
}
