//! Recipients of submission e-mails (`notifyEmail`): the owner's own address if the identity provider verified it,
//! and addresses confirmed through a link that is e-mailed once. Forms therefore can't be used to e-mail strangers.

use domain::recipients::{LINK_PURPOSE, RECIPIENTS_MAX, mailbox, normalized};
use store::Conn;
use store::recipients::{self, NewRecipient};
use web::{Code, Problem};

use crate::App;
use crate::call::Call;
use crate::signin::{ConfirmationLink, token};

impl<S> Call<S> {
    /// Requests confirmation of an address unless it is confirmed or already requested. Call it before taking any
    /// other lock. Limits how many addresses an account may request.
    pub(super) async fn request_recipient(
        &self,
        app: &App,
        conn: &mut Conn,
        address: &str,
    ) -> Result<(), Problem> {
        let address = normalized(address);
        let is_known = async |conn: &mut Conn| {
            let owners =
                recipients::list_confirmed(conn, self.account_id, std::slice::from_ref(&address)).await?;
            Ok::<_, Problem>(
                !owners.is_empty() || recipients::has_recipient(conn, self.account_id, &address).await?,
            )
        };
        if is_known(conn).await? {
            return Ok(());
        }
        if self.caller.account.claimed_at.is_none() {
            let detail = "a new notifyEmail must be confirmed by e-mail, which needs a claimed account";
            return Err(Problem::new(Code::PlanRestricted, detail)
                .hint("sign in at the claimUrl of POST /api/trial, or leave notifyEmail out"));
        }
        let rules = &app.recipients;
        let since = self.now - rules.window;
        let requests =
            recipients::lock_confirmation_requests(conn, self.account_id, &mailbox(&address), since).await?;
        // Checks again: a concurrent call may have requested it before the lock was taken.
        if is_known(conn).await? {
            return Ok(());
        }
        if requests.of_account >= RECIPIENTS_MAX {
            let detail = format!("an account may request confirmation of at most {RECIPIENTS_MAX} addresses");
            return Err(Problem::new(Code::QuotaExceeded, detail));
        }
        if requests.lately_by_account >= rules.max_per_account
            || requests.lately_at_address >= rules.max_per_address
        {
            let detail = "a new notifyEmail must be confirmed by e-mail, and the limit of confirmation requests is reached for now";
            return Err(Problem::new(Code::RateLimited, detail).retry_after(rules.window.as_secs()));
        }
        let link = ConfirmationLink::new(app);
        let new = NewRecipient {
            id: app.rng.uuid_v7(self.now),
            address: &address,
            token_hash: token::hash(&link.token),
            sealed_link: &app.master_key.seal(LINK_PURPOSE, app.rng.bytes(), link.url(app).as_bytes()),
            asked_at: self.now,
        };
        recipients::insert_recipient(conn, self.account_id, &new).await?;
        Ok(())
    }
}
