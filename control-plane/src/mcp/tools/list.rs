//! The list of tools. Each is written as JSON once, because a list is sent at the start of every conversation.

use std::collections::HashMap;
use std::sync::Arc;

use domain::scopes::ScopeSet;
use rmcp::model::Tool;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::class::{Class, is_destructive, is_idempotent, required_scopes};
use super::defaults::ITSELF;
use super::search::Index;
use super::{brief_schema, defaults, own};
use crate::catalog::{CATEGORIES, Catalog, Operation};

/// The toolset of the tools that are listed by default.
const DEFAULT: &str = "default";
/// The toolset of all tools.
const ALL: &str = "all";

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum Target {
    Search,
    Describe,
    /// Calls the operation that its arguments name.
    Call(Class),
    /// An operation, by its position in the catalog.
    Operation(usize),
}

/// A tool as it is listed.
#[derive(Debug)]
struct Listed {
    category: &'static str,
    is_default: bool,
    /// A key needs one of these sets; empty for a tool that needs none.
    scopes: Vec<ScopeSet>,
    json: Box<RawValue>,
}

/// All tools.
#[derive(Debug)]
pub(in crate::mcp) struct Tools {
    /// In the order of the list.
    listed: Vec<Listed>,
    by_name: HashMap<String, Target>,
    index: Index,
}

impl Tools {
    /// Makes the tools of a catalog.
    pub(in crate::mcp) fn new(catalog: &Catalog) -> Self {
        let mut tools = Self { listed: Vec::new(), by_name: HashMap::new(), index: Index::new(catalog) };
        tools.add_own(Target::Search, vec![], &own::search_api());
        tools.add_own(Target::Describe, vec![], &own::describe_api());
        for class in Class::ALL {
            let of_class = |operation: &&Operation| Class::of(operation) == class && operation.served_here;
            let of_class = catalog.operations().iter().filter(of_class);
            let scopes = of_class.filter_map(required_scopes).collect();
            tools.add_own(Target::Call(class), scopes, &own::call_api(class));
        }
        let position = |id: &str| defaults::OPERATIONS.iter().position(|default| *default == id);
        let mut operations: Vec<_> = catalog.operations().iter().enumerate().collect();
        operations.retain(|(_, operation)| operation.category != ITSELF);
        operations
            .sort_by_key(|(_, operation)| position(&operation.id).unwrap_or(defaults::OPERATIONS.len()));
        for (at, operation) in operations {
            let tool = tool_of(operation);
            tools.by_name.insert(operation.id.clone(), Target::Operation(at));
            tools.by_name.insert(tool.name.to_string(), Target::Operation(at));
            if operation.served_here && !operation.is_deprecated {
                let scopes = required_scopes(operation).into_iter().collect();
                tools.add(operation.category, position(&operation.id).is_some(), scopes, &tool);
            }
        }
        tools
    }

    fn add_own(&mut self, target: Target, scopes: Vec<ScopeSet>, tool: &Tool) {
        self.by_name.insert(tool.name.to_string(), target);
        self.add(DEFAULT, true, scopes, tool);
    }

    fn add(&mut self, category: &'static str, is_default: bool, scopes: Vec<ScopeSet>, tool: &Tool) {
        if let Ok(json) = to_raw_value(tool) {
            self.listed.push(Listed { category, is_default, scopes, json });
        }
    }

    /// Returns what a tool's name stands for. Dots are as good as underscores, and `get_account` finds `account.read`.
    pub(in crate::mcp) fn find(&self, name: &str) -> Option<Target> {
        let by_verb = || {
            let (verb, noun) = name.split_once('_')?;
            let action = if verb == "get" { "read" } else { verb };
            let find = |plural: &str| self.by_name.get(&format!("{noun}{plural}.{action}"));
            find("").or_else(|| find("s"))
        };
        self.by_name.get(name).or_else(by_verb).copied()
    }

    /// Returns the operations that match the words best, of those that a key with these scopes can call.
    pub(in crate::mcp) fn search(&self, scopes: ScopeSet, query: &str, limit: Option<usize>) -> Value {
        self.index.search(scopes, query, limit)
    }

    /// Returns the id of an operation that an unknown name most likely means.
    pub(in crate::mcp) fn nearest(&self, name: &str) -> Option<&str> {
        self.index.nearest(name)
    }

    /// Returns the tools that a key with these scopes can call, of the named toolsets.
    ///
    /// # Errors
    /// The first name that is no toolset.
    pub(in crate::mcp) fn list<'a>(
        &'a self,
        toolsets: &'a [&'a str],
        scopes: ScopeSet,
    ) -> Result<impl Iterator<Item = &'a RawValue>, &'a str> {
        let is_known =
            |name: &str| [DEFAULT, ALL].contains(&name) || CATEGORIES.contains(&name) && name != ITSELF;
        if let Some(unknown) = toolsets.iter().find(|name| !is_known(name)) {
            return Err(unknown);
        }
        let names = |name: &str| toolsets.contains(&name);
        let is_asked = move |tool: &Listed| {
            let is_default = tool.is_default && (toolsets.is_empty() || names(DEFAULT));
            is_default || tool.category == DEFAULT || names(ALL) || names(tool.category)
        };
        let is_allowed = move |tool: &Listed| {
            tool.scopes.is_empty() || tool.scopes.iter().any(|needed| needed.is_subset_of(scopes))
        };
        let shown = self.listed.iter().filter(move |tool| is_asked(tool) && is_allowed(tool));
        Ok(shown.map(|tool| &*tool.json))
    }

    /// Returns the names of the toolsets.
    pub(in crate::mcp) fn toolsets() -> String {
        let categories = CATEGORIES.into_iter().filter(|name| *name != ITSELF);
        [DEFAULT, ALL].into_iter().chain(categories).collect::<Vec<_>>().join(", ")
    }
}

fn tool_of(operation: &Operation) -> Tool {
    let note = defaults::NOTES.iter().find(|(id, _)| *id == operation.id).map(|(_, note)| *note);
    let description = match note {
        Some(note) => format!("{}. {note}", operation.summary),
        None => operation.summary.clone(),
    };
    let input = Arc::new(brief_schema::of_input(&operation.input_schema, &operation.method));
    let annotations = Class::of(operation).annotations(is_destructive(operation), is_idempotent(operation));
    let tool = Tool::new(operation.id.replace('.', "_"), description, input).with_annotations(annotations);
    match operation.response.as_ref().and_then(brief_schema::of_output) {
        Some(output) => tool.with_raw_output_schema(Arc::new(output)),
        None => tool,
    }
}
