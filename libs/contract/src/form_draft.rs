//! A draft of a form, which the console passes to the edge: the edge renders it as its page would show it.

use domain::plans::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Path of the console under which it answers with a draft.
pub const PATH: &str = "/console/forms/preview";

/// A draft, and the account that may see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormDraft {
    pub account_id: Uuid,
    /// Its limit of file sizes is shown.
    pub plan: Plan,
    /// The body of `forms.create`. It was not validated.
    pub form: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_ends_know_this_shape() {
        let draft = FormDraft { account_id: Uuid::nil(), plan: Plan::Pro, form: json!({ "name": "F" }) };
        let sent = json!({ "account_id": Uuid::nil(), "plan": "pro", "form": { "name": "F" } });
        assert_eq!(serde_json::to_value(&draft).unwrap(), sent);
        assert_eq!(serde_json::from_value::<FormDraft>(sent).unwrap(), draft);
    }
}
