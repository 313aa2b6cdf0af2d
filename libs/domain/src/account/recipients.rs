//! Recipients of submission mails: the account's owner, and addresses that have confirmed.

/// Encryption purpose of the confirmation links.
pub const LINK_PURPOSE: &str = "mail_recipients.link";
/// Maximum number of addresses besides the owner's in one account, confirmed or not.
pub const RECIPIENTS_MAX: i64 = 50;

/// Returns an address in the form in which two are compared: mailboxes that differ only in case do not occur.
pub fn normalized(address: &str) -> String {
    address.trim().to_lowercase()
}

/// Returns the mailbox of a normalized address: most providers deliver `ana+anything@example.com` to `ana@example.com`, so
/// requests are counted by mailbox.
pub fn mailbox(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
    let local = local.split_once('+').map_or(local, |(name, _tag)| name);
    format!("{local}@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_case_insensitively() {
        assert_eq!(normalized(" Ana@Example.COM "), "ana@example.com");
    }

    #[test]
    fn addresses_with_tags_share_a_mailbox() {
        for address in ["ana@example.com", "ana+1@example.com", "ana+1+2@example.com", "ana+@example.com"] {
            assert_eq!(mailbox(address), "ana@example.com");
        }
        assert_eq!(mailbox("an.a@example.com"), "an.a@example.com");
        assert_eq!(mailbox("+1@example.com"), "@example.com");
    }
}
