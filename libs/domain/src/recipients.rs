//! Whom a form may have mailed of its submissions: the account's owner, and whoever has agreed to it.

/// Under which purpose the links to agree by are sealed.
pub const LINK_PURPOSE: &str = "mail_recipients.link";
/// Most addresses besides the owner's that an account has, whatever they answered.
pub const RECIPIENTS_MAX: i64 = 50;

/// An address as two are compared: nobody keeps mailboxes that differ by capital letters alone.
pub fn folded(address: &str) -> String {
    address.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_without_capital_letters() {
        assert_eq!(folded(" Ana@Example.COM "), "ana@example.com");
    }
}
