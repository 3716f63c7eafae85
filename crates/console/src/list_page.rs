//! What the pages of lists have in common: a title, a filter, a live table, a link to older rows.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page_with};
use crate::run_list::live_indicator;

pub(crate) struct ListPage<'a> {
    pub(crate) section: Section,
    pub(crate) title: &'a str,
    pub(crate) filter: Markup,
    /// The class of the table.
    pub(crate) class: &'a str,
    pub(crate) headings: &'a [&'a str],
    /// The id of the part that the live stream replaces.
    pub(crate) rows_id: &'a str,
    pub(crate) rows: Markup,
    /// The stream of the rows; the newest page has one.
    pub(crate) live_url: Option<String>,
    /// The page with older rows, and what its link says.
    pub(crate) older: Option<(String, &'a str)>,
}

pub(crate) fn list_page(chrome: &Chrome, list: &ListPage<'_>) -> String {
    let body = html! {
        div.title-line {
            h1 { (list.title) }
            @if list.live_url.is_some() { (live_indicator()) }
        }
        (list.filter)
        div.panel {
            table class={ "rows " (list.class) } {
                thead { tr { @for heading in list.headings { th scope="col" { (heading) } } } }
                tbody id=(list.rows_id) data-live-rows=[&list.live_url] { (list.rows) }
            }
        }
        @if let Some((href, text)) = &list.older {
            p.pager { a.button href=(href) { (text) } }
        }
    };
    page_with(chrome, list.section, list.title, &body, &["desk.css"], &[])
}

/// Stands for the rows of an empty table.
pub(crate) fn no_rows(columns: usize, text: &str) -> Markup {
    html! { tr.empty { td colspan=(columns) { (text) } } }
}
