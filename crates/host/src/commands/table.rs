//! Tables without borders, which can be processed with `cut` and `awk`.

use comfy_table::{Table, presets};

pub(super) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = table_without_header();
    table.set_header(header);
    table
}

pub(super) fn table_without_header() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}
