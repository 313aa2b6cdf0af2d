//! The operations of the API as data: what the reference, the schema and the tools of agents are made of.
//!
//! Made once from the finished API document, so that a handler's signature stays the only description of an operation.

mod category;
mod operation;
mod request;
mod schema;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use aide::openapi::OpenApi;
use http::Method;
use serde_json::{Map, Value};

pub(crate) use category::CATEGORIES;
pub(crate) use operation::{Location, Operation, Parameter};
pub(crate) use request::RequestParts;

/// The operations of this process. Every router has the same ones, and reading them takes a while.
pub(crate) static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();

/// Returns the id of the operation of a route, once a router was made.
pub(crate) fn find_operation_id(method: &Method, path: &str) -> Option<&'static str> {
    let mut operations = CATALOG.get()?.operations().iter();
    let found = operations.find(|operation| operation.method == method && operation.path == path);
    found.map(|operation| operation.id.as_str())
}

/// The operations, in the order of the document.
#[derive(Debug)]
pub(crate) struct Catalog {
    operations: Vec<Operation>,
    by_id: HashMap<String, usize>,
}

impl Catalog {
    /// Reads the operations of a finished document.
    pub(crate) fn new(document: &OpenApi) -> Self {
        let document = serde_json::to_value(document).unwrap_or_default();
        let empty = Map::new();
        let components = document.pointer("/components/schemas").and_then(Value::as_object).unwrap_or(&empty);
        let paths = document["paths"].as_object().unwrap_or(&empty);
        let mut operations = Vec::new();
        for (path, item) in paths {
            for (method, operation) in item.as_object().unwrap_or(&empty) {
                operations.extend(Operation::read(method, path, operation, components));
            }
        }
        let by_id = operations.iter().enumerate().map(|(at, operation)| (operation.id.clone(), at)).collect();
        Self { operations, by_id }
    }

    /// Returns the operation with this id, such as `forms.create`.
    pub(crate) fn find(&self, id: &str) -> Option<&Operation> {
        self.by_id.get(id).and_then(|at| self.operations.get(*at))
    }

    /// Returns all operations.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the operations of a category.
    pub(crate) fn operations_of<'a>(&'a self, category: &'a str) -> impl Iterator<Item = &'a Operation> {
        self.operations.iter().filter(move |operation| operation.category == category)
    }
}

#[cfg(test)]
mod tests;
