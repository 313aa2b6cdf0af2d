//! [`Aggregate`]: a sum or count over rows, in SQL.

/// An aggregate function of ClickHouse and its argument. The result is a `UInt64`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aggregate {
    function: &'static str,
    argument: &'static str,
}

impl Aggregate {
    /// Counts rows.
    pub(super) const COUNT: Self = Self { function: "count", argument: "" };

    /// Adds up an expression, which must not be signed.
    pub(super) const fn sum(expression: &'static str) -> Self {
        Self { function: "sum", argument: expression }
    }

    /// Counts the distinct values of an expression.
    pub(super) const fn distinct(expression: &'static str) -> Self {
        Self { function: "uniqExact", argument: expression }
    }

    /// Returns SQL of the aggregate over all rows, or over those that match a condition.
    pub(super) fn sql(self, condition: Option<&str>) -> String {
        let Self { function, argument } = self;
        match condition {
            None => format!("{function}({argument})"),
            Some(condition) if argument.is_empty() => format!("{function}If({condition})"),
            Some(condition) => format!("{function}If({argument}, {condition})"),
        }
    }
}
