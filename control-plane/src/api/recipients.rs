//! Who may be mailed of submissions (`notifyEmail`): the account's owner, if their provider vouches for the address, and
//! whoever else has agreed to it, by a link that is mailed to them once. So nobody is mailed by strangers' forms.

use domain::recipients::{LINK_PURPOSE, RECIPIENTS_MAX, folded};
use store::Conn;
use store::recipients::{self, NewRecipient};
use web::{Code, Problem};

use crate::App;
use crate::call::Call;
use crate::signin::{ConfirmationLink, token};

impl<S> Call<S> {
    /// Has an address asked whether it may be mailed, unless that is known, or it was asked before. Before any other
    /// lock is taken.
    ///
    /// # Errors
    /// Too many were asked lately, or too often; or the database's.
    pub(super) async fn ask_recipient(
        &self,
        app: &App,
        conn: &mut Conn,
        address: &str,
    ) -> Result<(), Problem> {
        let address = folded(address);
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
        let rules = &app.recipients;
        let since = self.now - rules.window;
        let asked = recipients::lock_asked(conn, self.account_id, &address, since).await?;
        // Somebody may have asked meanwhile.
        if is_known(conn).await? {
            return Ok(());
        }
        if asked.of_account >= RECIPIENTS_MAX {
            let detail =
                format!("an account asks at most {RECIPIENTS_MAX} addresses whether it may mail them");
            return Err(Problem::new(Code::QuotaExceeded, detail));
        }
        if asked.lately_by_account >= rules.max_per_account
            || asked.lately_at_address >= rules.max_per_address
        {
            let detail = "notifyEmail is asked by mail first, and today as many were asked as may be";
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
