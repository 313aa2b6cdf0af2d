//! Forms: their fields and settings, and the number of their submissions.

mod closing;
mod read;
mod write;

pub use crate::form_locks::lock_form_shared;
pub(crate) use closing::notify_closed;
pub use closing::{close_form, list_closing};
pub use read::{Form, OpenForm, find_form, find_open_form, list_forms};
pub use write::{delete_form, insert_form, lock_form, update_form};
