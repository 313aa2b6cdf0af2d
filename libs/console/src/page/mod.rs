//! A page: a template with its context, in the shell, with its headers.

mod content_security_policy;
mod icons;
mod page_part;
mod response;
mod template_functions;
mod templates;

pub(crate) use content_security_policy::PageHeaders;
pub(crate) use response::{Page, Section, answer_part, is_compressible, redirect};
pub(crate) use templates::Templates;
