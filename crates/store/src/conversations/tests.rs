use super::{LISTING_PAGE_BYTES, Listing, SCANNED_ROWS, listing};

fn page(
    bytes: &[usize],
    limit: usize,
    matches: impl Fn(&(usize, usize)) -> bool,
) -> Listing<usize, (usize, usize)> {
    let rows = bytes.iter().copied().enumerate().map(Ok::<_, ()>);
    listing(rows, limit, |row| row.0, |row| row.1, matches).unwrap()
}

#[test]
fn page_ends_at_its_limit_and_names_its_last_row() {
    let first = page(&[1, 1, 1], 2, |_| true);
    assert_eq!((first.rows.len(), first.next), (2, Some(1)));
    let all = page(&[1, 1, 1], 3, |_| true);
    assert_eq!((all.rows.len(), all.next), (3, None), "nothing follows");
}

#[test]
fn page_is_bounded_in_bytes_but_never_empty_for_them() {
    let long = page(&[LISTING_PAGE_BYTES + 1, 1], 10, |_| true);
    assert_eq!((long.rows.len(), long.next), (1, Some(0)));
}

#[test]
fn page_ends_after_many_rows_that_do_not_match() {
    let many = vec![0; 3 * SCANNED_ROWS];
    let found = page(&many, 10, |row| row.0 == 2 * SCANNED_ROWS);
    assert_eq!((found.rows.len(), found.next), (0, Some(SCANNED_ROWS - 1)));
}
