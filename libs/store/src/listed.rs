//! The position of each row of a paginated list.

use domain::{Cursor, Listed};

use crate::activity::Activity;
use crate::archives::Archive;
use crate::assets::Asset;
use crate::automations::{Automation, Run};
use crate::deliveries::Delivery;
use crate::deploys::Deploy;
use crate::domains::Domain;
use crate::entries::Entry;
use crate::folders::Folder;
use crate::forms::Form;
use crate::keys::Key;
use crate::pages::PageSummary;
use crate::sites::Site;
use crate::subdomain_names::ListedSubdomain;
use crate::submissions::Submission;
use crate::webhooks::Webhook;

/// Lists are ordered by creation, with the id between rows of the same time.
macro_rules! listed {
    ($($row:ty),+ $(,)?) => {
        $(impl Listed for $row {
            fn cursor(&self) -> Cursor {
                Cursor { created_at: self.created_at, id: self.id }
            }
        })+
    };
}
listed!(
    Activity,
    Archive,
    Asset,
    Automation,
    Delivery,
    Deploy,
    Domain,
    Entry,
    Folder,
    Form,
    Key,
    ListedSubdomain,
    PageSummary,
    Run,
    Site,
    Submission,
    Webhook,
);
