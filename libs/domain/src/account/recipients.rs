//! Recipients of submission mails: the account's owner, and addresses that have confirmed.

/// Encryption purpose of the confirmation links.
pub const LINK_PURPOSE: &str = "mail_recipients.link";
/// Maximum number of addresses besides the owner's in one account, confirmed or not.
pub const RECIPIENTS_MAX: i64 = 50;

/// Returns an address in the form in which two are compared: mailboxes that differ only in case do not occur.
pub fn normalized(address: &str) -> String {
    address.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_case_insensitively() {
        assert_eq!(normalized(" Ana@Example.COM "), "ana@example.com");
    }
}
