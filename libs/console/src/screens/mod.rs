//! The screens: each asks operations and renders a template.

pub(crate) mod account;
mod account_form;
pub(crate) mod analytics;
pub(crate) mod automations;
pub(crate) mod builder;
pub(crate) mod folders;
pub(crate) mod form_details;
pub(crate) mod forms;
pub(crate) mod keys;
mod not_found;
pub(crate) mod overview;
mod path_parameters;
pub(crate) mod sites;
pub(crate) mod static_file;
pub(crate) mod submissions;
pub(crate) mod theme;
mod usage;
pub(crate) mod webhooks;
pub(crate) mod welcome;

use account_form::AccountForm;
use not_found::not_found;
use path_parameters::PathParameters;
