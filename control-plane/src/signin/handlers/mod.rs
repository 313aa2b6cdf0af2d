//! Handlers of the sign-in pages, in the order in which a visitor meets them.

pub(super) mod login;

pub(super) mod attempt;
pub(super) mod callback;
pub(super) mod local;

pub(super) mod account;
pub(super) mod claim;
pub(super) mod recipient;
