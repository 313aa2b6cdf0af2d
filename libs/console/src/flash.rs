//! The message after a redirect: a cookie of 30 seconds names one of a fixed list, so that a link can't put words into the
//! console's mouth.

use http::HeaderValue;

use crate::viewer::Viewer;

const COOKIE: &str = "console-flash";
const SECONDS: u32 = 30;

macro_rules! messages {
    ($($name:ident = $word:literal, $text:literal;)+) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Flash { $($name),+ }

        impl Flash {
            fn as_str(self) -> &'static str { match self { $(Self::$name => $word),+ } }
            fn parse(word: &str) -> Option<Self> { match word { $($word => Some(Self::$name),)+ _ => None } }
            /// Returns the message.
            pub(crate) fn text(self) -> &'static str { match self { $(Self::$name => $text),+ } }
        }
    };
}

messages! {
    Archived = "archived", "Archived.";
    MarkedAsSpam = "spam", "Marked as spam.";
    MovedToInbox = "received", "Moved to the inbox.";
    Deleted = "deleted", "Deleted.";
    AnswersSaved = "answers-saved", "The answers are changed.";
    NothingChanged = "nothing-changed", "Nothing was changed.";
    SubmissionMade = "submission-made", "The submission is added, as if it had been sent.";
    AddressErased = "address-erased", "All submissions of that address are deleted.";
    NoneOfAddress = "none-of-address", "No submission of this form has that address. Nothing was deleted.";
    SentAgain = "sent-again", "It is being sent again.";
    KeyRevoked = "key-revoked", "The key is revoked. It stops working within a second.";
    AccountSaved = "account-saved", "Saved.";
    PlanChanged = "plan-changed", "The plan is changed.";
    SessionEnded = "session-ended", "The session is ended.";
    OtherSessionsEnded = "sessions-ended", "All other sessions are ended.";

    AutomationMade = "automation-made", "The automation is made and switched on.";
    AutomationSaved = "automation-saved", "Saved. Runs that have begun go on as they were.";
    AutomationOn = "automation-on", "Switched on.";
    AutomationOff = "automation-off", "Switched off. Runs that have begun go on.";
    AutomationDeleted = "automation-deleted", "The automation and its runs are deleted.";
    RunStarted = "run-started", "A new run was started.";
    RunCancelled = "run-cancelled", "The run is cancelled.";
    WebhookSaved = "webhook-saved", "Saved.";
    WebhookOn = "webhook-on", "Switched on. Events from now on are delivered.";
    WebhookOff = "webhook-off", "Switched off. Deliveries that were waiting are canceled.";
    WebhookDeleted = "webhook-deleted", "The webhook and its deliveries are deleted.";
    FormCreated = "form-created", "The form is made. Share its address, or put it into a page.";
    FormSaved = "form-saved", "Saved. Visitors see it from now on.";
    FormDeleted = "form-deleted", "The form is deleted, with its submissions.";
    FormClosed = "form-closed", "The form is closed. Visitors read that it takes no more answers.";
    FormOpened = "form-opened", "The form is open again.";

    AnalyticsSiteMade = "analytics-site-made", "The site is made. Its visits are counted from now on.";
    AnalyticsSiteSaved = "analytics-site-saved", "Saved. Visits from now on follow it.";
    AnalyticsSiteDeleted = "analytics-site-deleted", "The site is deleted, with all that was counted.";

    FolderMade = "folder-made", "The folder is made. Add something.";
    FolderSaved = "folder-saved", "Saved.";
    FolderDeleted = "folder-deleted", "The folder is deleted. What was in it is in no folder now.";
    AddedToFolder = "added-to-folder", "Added to the folder.";
    RemovedFromFolder = "removed-from-folder", "Removed from the folder.";

    SiteRenamed = "site-renamed", "Renamed. The site answers at its new address, and no longer at the old one.";
    AssetStored = "asset-stored", "Stored. Its address is below.";
    SiteMade = "site-made", "The site is made. Publish something on it.";
    PageSaved = "page-saved", "Saved.";
    PageMade = "page-made", "The page is made.";
    PageDeleted = "page-deleted", "The page is deleted. Its entries are archived.";
    VersionRestored = "version-restored", "The version is restored. What it replaced is a version, too.";
    EntryAdded = "entry-added", "The entry is added.";
    EntriesRestored = "entries-restored", "The entries are restored.";
    RolledBack = "rolled-back", "The deploy is rolled back.";
    DomainAdded = "domain-added", "The domain is added. Now set its records.";
    DomainChecked = "domain-checked", "The records were looked up.";
    DomainSaved = "domain-saved", "Saved. Visitors get it within a second.";
    DomainRemoved = "domain-removed", "The domain is removed.";
}

impl Flash {
    /// Returns the message that this request brings.
    pub(crate) fn of(viewer: &Viewer) -> Option<Self> {
        Self::parse(viewer.cookie(COOKIE)?)
    }

    /// Returns the `Set-Cookie` header that brings the message to the next page.
    pub(crate) fn set(self, is_secure: bool) -> HeaderValue {
        header(self.as_str(), SECONDS, is_secure)
    }

    /// Returns the `Set-Cookie` header that removes the message.
    pub(crate) fn clear(is_secure: bool) -> HeaderValue {
        header("", 0, is_secure)
    }
}

fn header(value: &str, seconds: u32, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={value}; Path=/console; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    // The text consists of names and digits chosen here, so it is always a valid header value.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}
