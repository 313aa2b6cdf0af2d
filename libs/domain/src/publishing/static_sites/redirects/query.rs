//! The query of a request, and the conditions of rules on it.

use std::cell::OnceCell;
use std::collections::HashMap;

use percent_encoding::{AsciiSet, percent_encode};
use url::form_urlencoded;

use crate::static_sites::patterns::{Captures, is_name};
use crate::url_escapes;

/// Characters that a query in a `Location` must not contain. Others are forwarded as they were sent.
const FORWARDED: &AsciiSet = &url_escapes::FORBIDDEN.add(b'#');

/// The query of a request. It is parsed once, when the first rule asks for a parameter.
#[derive(Debug)]
pub struct RequestQuery<'a> {
    sent: &'a str,
    parameters: OnceCell<HashMap<String, String>>,
}

impl<'a> RequestQuery<'a> {
    /// Creates the query from its text as sent, without the `?`; empty if there is none.
    pub fn new(sent: &'a str) -> Self {
        Self { sent, parameters: OnceCell::new() }
    }

    /// Returns the first value of a parameter, decoded.
    fn value(&self, name: &str) -> Option<&str> {
        let parameters = self.parameters.get_or_init(|| {
            let mut parameters = HashMap::new();
            for (name, value) in form_urlencoded::parse(self.sent.as_bytes()) {
                parameters.entry(name.into_owned()).or_insert_with(|| value.into_owned());
            }
            parameters
        });
        parameters.get(name).map(String::as_str)
    }

    /// Returns an address with this query, as visible ASCII.
    pub fn appended_to(&self, address: &str) -> String {
        if self.sent.is_empty() { address.to_owned() } else { format!("{address}?{}", self.forwarded(&[])) }
    }

    /// Returns the query as it is forwarded to a target: without the parameters of the rule's conditions.
    pub(super) fn forwarded(&self, conditions: &[Condition]) -> String {
        let is_free = |pair: &&str| {
            let name = form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name);
            !conditions.iter().any(|condition| name.as_deref() == Some(condition.name.as_str()))
        };
        let pairs: Vec<&str> = self.sent.split('&').filter(is_free).collect();
        percent_encode(pairs.join("&").as_bytes(), FORWARDED).to_string()
    }
}

/// A parameter that a rule requires: `name=value`, or `name=:placeholder` for any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    name: String,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Is(String),
    Captured(String),
}

impl Condition {
    /// Parses `name=value`; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pairs = form_urlencoded::parse(text.as_bytes());
        let (Some((name, value)), None, true) = (pairs.next(), pairs.next(), text.contains('=')) else {
            return Err("a condition on the query is one `name=value` or `name=:placeholder`".to_owned());
        };
        let value = match value.strip_prefix(':') {
            Some(captured) if is_name(captured) => Value::Captured(captured.to_owned()),
            Some(_) => return Err("a placeholder in a query is `name=:placeholder`".to_owned()),
            None => Value::Is(value.into_owned()),
        };
        Ok(Self { name: name.into_owned(), value })
    }

    /// The placeholder that the condition fills.
    pub(super) fn placeholder(&self) -> Option<&str> {
        match &self.value {
            Value::Captured(placeholder) => Some(placeholder),
            Value::Is(_) => None,
        }
    }

    /// Adds the captured value; `None` if the query does not meet the condition.
    pub(super) fn capture(&self, query: &RequestQuery<'_>, captures: &mut Captures) -> Option<()> {
        let sent = query.value(&self.name)?;
        match &self.value {
            Value::Is(value) => (value == sent).then_some(()),
            Value::Captured(placeholder) => {
                captures.push((placeholder.clone(), sent.to_owned()));
                Some(())
            }
        }
    }

    /// Returns a query that meets the condition.
    pub(super) fn sample(&self, fill: impl Fn(&str) -> String) -> String {
        let value = match &self.value {
            Value::Is(value) => value.clone(),
            Value::Captured(placeholder) => fill(placeholder),
        };
        form_urlencoded::Serializer::new(String::new()).append_pair(&self.name, &value).finish()
    }
}
