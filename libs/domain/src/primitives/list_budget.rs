//! Bounds one page of a list in rows and in bytes, so that few large rows cost no more memory than many small ones.

use serde::Serialize;

/// Bytes of JSON at which a page of a list ends. A larger row is returned alone.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// What remains of a page of a list.
#[derive(Debug, Clone)]
pub struct ListBudget {
    rows: usize,
    bytes: usize,
    is_empty: bool,
}

impl ListBudget {
    /// The budget of a page with at most `limit` rows.
    pub fn new(limit: i64) -> Self {
        Self { rows: usize::try_from(limit).unwrap_or_default(), bytes: PAGE_BYTES_MAX, is_empty: true }
    }

    /// Returns whether a row of `bytes` belongs to this page, and takes its share. After a `false` the page is
    /// complete: the row is the first one of the next page.
    pub fn admits(&mut self, bytes: usize) -> bool {
        if self.rows == 0 || (bytes > self.bytes && !self.is_empty) {
            self.rows = 0;
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.is_empty = false;
        true
    }
}

/// Returns the size of a value as JSON, without writing it anywhere.
pub fn json_bytes(value: &(impl Serialize + ?Sized)) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // A value that can't be written counts as too large for any limit.
        Err(_unwritable) => usize::MAX,
    }
}

/// A writer that counts bytes.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of the rows fit on a page of at most `limit` rows.
    fn admitted(limit: i64, rows: &[usize]) -> usize {
        let mut budget = ListBudget::new(limit);
        rows.iter().take_while(|bytes| budget.admits(**bytes)).count()
    }

    #[test]
    fn a_page_ends_at_its_limit_of_rows_or_of_bytes() {
        assert_eq!(admitted(3, &[1; 5]), 3);
        assert_eq!(admitted(100, &[PAGE_BYTES_MAX / 4; 9]), 4);
        assert_eq!(admitted(100, &[PAGE_BYTES_MAX / 4 + 1; 9]), 3);
        assert_eq!(admitted(0, &[1]), 0);
    }

    #[test]
    fn a_row_over_the_limit_is_returned_alone() {
        assert_eq!(admitted(100, &[PAGE_BYTES_MAX + 1, 1]), 1);
        assert_eq!(admitted(100, &[usize::MAX, usize::MAX]), 1);
        assert_eq!(
            admitted(100, &[1, PAGE_BYTES_MAX, 1]),
            1,
            "a small row after it must not be moved before it"
        );
    }

    #[test]
    fn a_complete_page_admits_no_small_row_after_a_large_one() {
        let mut budget = ListBudget::new(100);
        assert!(budget.admits(PAGE_BYTES_MAX - 10) && !budget.admits(11) && !budget.admits(1));
    }

    #[test]
    fn counts_the_bytes_that_serde_writes() {
        let value = serde_json::json!({"name": "José", "list": [1, 2.5, null], "text": "a\"\n"});
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}
