//! Acts that need a recent sign-in, so that a stolen session cookie is not enough for them: creating keys that write, revealing
//! secrets, deletions with data, and changes of the plan. API keys, which have scopes, are unaffected.

use chrono::TimeDelta;
use serde_json::json;
use store::credentials::Credential;
use web::{Code, Problem};

use crate::App;
use crate::call::Call;

/// The page that leads to a new sign-in.
const SIGN_IN_URL: &str = "/login?again=true";

impl<S> Call<S> {
    /// Returns 403 `sign_in_again` to a session with a sign-in that is too old.
    pub(crate) fn require_fresh_sign_in(&self, app: &App) -> Result<(), Problem> {
        let fresh_for = app.signin.config.fresh_for();
        match self.caller.credential {
            Credential::Session { signed_in_at, .. } if self.now - signed_in_at > fresh_for => {
                Err(sign_in_again(fresh_for))
            }
            Credential::Session { .. } | Credential::Key { .. } => Ok(()),
        }
    }
}

fn sign_in_again(fresh_for: TimeDelta) -> Problem {
    let minutes = fresh_for.num_minutes();
    let detail = format!("with a session this is possible only within {minutes} minutes of a sign-in");
    Problem::new(Code::SignInAgain, detail)
        .with("signInUrl", json!(SIGN_IN_URL))
        .hint("sign in again at `signInUrl`, with the path to return to as `returnTo`, or use an API key")
}
