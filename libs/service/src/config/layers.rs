//! Merges the settings file, the environment and `--set` over the defaults. Rejects every key that the defaults lack.

use std::collections::HashMap;

use toml::{Table, Value};

use super::config_error::Error;
use super::schema::Schema;
use super::secret_names::is_secret_name;
use super::sources::{ENVIRONMENT_PREFIX, OTLP_VARIABLE, Sources};
use super::typed;

/// One value from the environment or `--set`.
struct Entry<'a> {
    /// The variable or option that sets the value, for error messages.
    origin: String,
    path: Vec<String>,
    text: &'a str,
}

/// All layers as one table.
pub(super) struct Merged {
    pub(super) table: Table,
    /// The source of every value that isn't a default, by the value's path.
    pub(super) origins: HashMap<String, String>,
    /// The origins of entries for sections that the defaults lack.
    pub(super) unused: Vec<String>,
}

impl Merged {
    /// Returns the source of the value at `path`, or of the list or section it is part of.
    pub(super) fn origin(&self, path: &str) -> &str {
        let wider = std::iter::successors(Some(path), |path| path.rfind(['.', '[']).map(|end| &path[..end]));
        let set = wider.filter_map(|path| self.origins.get(path)).next();
        set.map_or("the built-in defaults", String::as_str)
    }
}

pub(super) fn merge(schema: &Schema, sources: &Sources) -> Result<Merged, Error> {
    let defaults = &schema.table;
    let mut merged = Merged { table: defaults.clone(), origins: HashMap::new(), unused: Vec::new() };
    if let Some(path) = &sources.file {
        let wrong = |reason: String| Error::File { path: path.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let mut file: Table = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        if sources.skips_unknown_sections {
            file.retain(|section, _| defaults.contains_key(section));
        }
        let origin = path.display().to_string();
        refuse_renamed(schema, &file, &mut Vec::new(), &origin)?;
        let Merged { table, origins, .. } = &mut merged;
        overlay(table, defaults, file, &mut Vec::new(), &origin, origins)?;
    }
    for entry in from_environment(&sources.environment).chain(from_set(&sources.set)) {
        let entry = entry?;
        let path = entry.path.join(".");
        if let Some(new) = schema.new_path(&path) {
            return Err(Error::Renamed { origin: entry.origin, key: path, new });
        }
        let known = entry.path.first().is_some_and(|section| defaults.contains_key(section));
        if known {
            merged.origins.insert(path, entry.origin.clone());
            put(&mut merged.table, defaults, entry)?;
        } else {
            merged.unused.push(entry.origin);
        }
    }
    Ok(merged)
}

fn refuse_renamed(schema: &Schema, from: &Table, path: &mut Vec<String>, origin: &str) -> Result<(), Error> {
    for (key, value) in from {
        path.push(key.clone());
        match value {
            Value::Table(table) if !table.is_empty() => refuse_renamed(schema, table, path, origin)?,
            _ => {
                let key = path.join(".");
                if let Some(new) = schema.new_path(&key) {
                    return Err(Error::Renamed { origin: origin.to_owned(), key, new });
                }
            }
        }
        path.pop();
    }
    Ok(())
}

fn from_environment(variables: &[(String, String)]) -> impl Iterator<Item = Result<Entry<'_>, Error>> {
    // The standard OTLP variable comes first, so that our own variable overrides it.
    let standard = variables.iter().filter(|(name, _)| name == OTLP_VARIABLE).map(|(name, text)| Entry {
        origin: name.clone(),
        path: vec!["telemetry".into(), "otlp_endpoint".into()],
        text,
    });
    let ours = variables.iter().filter_map(|(name, text)| {
        let path = name.strip_prefix(ENVIRONMENT_PREFIX)?.to_lowercase();
        Some(Entry { origin: name.clone(), path: path.split("__").map(str::to_owned).collect(), text })
    });
    standard.chain(ours).map(Ok)
}

fn from_set(entries: &[String]) -> impl Iterator<Item = Result<Entry<'_>, Error>> {
    entries.iter().map(|entry| {
        let Some((key, text)) = entry.split_once('=') else {
            return Err(Error::Form { entry: entry.clone() });
        };
        let path = key.trim().split('.').map(str::to_owned).collect();
        Ok(Entry { origin: format!("--set {}", key.trim()), path, text })
    })
}

fn overlay(
    into: &mut Table,
    defaults: &Table,
    from: Table,
    path: &mut Vec<String>,
    origin: &str,
    origins: &mut HashMap<String, String>,
) -> Result<(), Error> {
    for (key, value) in from {
        path.push(key.clone());
        let Some(default) = defaults.get(&key) else { return Err(unknown(defaults, path, origin)) };
        match (value, default, into.get_mut(&key)) {
            (Value::Table(value), Value::Table(default), Some(Value::Table(into))) if !default.is_empty() => {
                overlay(into, default, value, path, origin, origins)?;
            }
            (value, default, _) => {
                let value = typed::check(value, default).map_err(|reason| wrong(path, origin, reason))?;
                refuse_other_secrets(&value, path, origin)?;
                origins.insert(path.join("."), origin.to_owned());
                into.insert(key, value);
            }
        }
        path.pop();
    }
    Ok(())
}

/// Refuses secrets of the operator's keys that are no texts. The error of their service would show them.
fn refuse_other_secrets(value: &Value, path: &mut Vec<String>, origin: &str) -> Result<(), Error> {
    for (key, value) in value.as_table().into_iter().flatten() {
        path.push(key.clone());
        match value {
            Value::String(_) => {}
            Value::Table(_) => refuse_other_secrets(value, path, origin)?,
            other if is_secret_name(key) => {
                let reason = format!("expected a text in quotes, found {}", other.type_str());
                return Err(wrong(path, origin, reason));
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

fn put(merged: &mut Table, defaults: &Table, entry: Entry<'_>) -> Result<(), Error> {
    let Entry { origin, path, text } = entry;
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let (mut into, mut defaults) = (merged, defaults);
    for (depth, key) in parents.iter().enumerate() {
        let deeper = path.get(..=depth).unwrap_or_default();
        match (into.get_mut(key), defaults.get(key)) {
            // An empty default table accepts any key: the operator chooses the names.
            (Some(Value::Table(open)), Some(Value::Table(default))) if default.is_empty() => {
                let rest = path.get(depth + 1..).unwrap_or_default();
                return put_open(open, rest, text).map_err(|reason| wrong(&path, &origin, reason));
            }
            (Some(Value::Table(next)), Some(Value::Table(default))) => (into, defaults) = (next, default),
            (Some(_), _) => return Err(wrong(deeper, &origin, "it is a value, not a section".into())),
            _ => return Err(unknown(defaults, deeper, &origin)),
        }
    }
    let Some(default) = defaults.get(last) else { return Err(unknown(defaults, &path, &origin)) };
    let value = typed::parse(text, default).map_err(|reason| wrong(&path, &origin, reason))?;
    refuse_other_secrets(&value, &mut path.clone(), &origin)?;
    into.insert(last.clone(), value);
    Ok(())
}

fn put_open(into: &mut Table, path: &[String], text: &str) -> Result<(), String> {
    match path {
        [] => Ok(()),
        [last] => {
            // A secret of digits stays a text.
            let value =
                if is_secret_name(last) { Value::String(text.to_owned()) } else { typed::guess(text) };
            into.insert(last.clone(), value);
            Ok(())
        }
        [first, rest @ ..] => {
            let next = into.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()));
            let next = next.as_table_mut().ok_or_else(|| format!("`{first}` is a value, not a section"))?;
            put_open(next, rest, text)
        }
    }
}

fn unknown(siblings: &Table, path: &[String], origin: &str) -> Error {
    let (last, parents) = path.split_last().map_or(("", path), |(last, parents)| (last.as_str(), parents));
    let nearest = siblings
        .keys()
        .map(|key| (strsim::damerau_levenshtein(key, last), key))
        .min()
        .filter(|(distance, key)| *distance <= 2.max(key.len() / 3));
    let suggestion =
        nearest.map(|(_, key)| parents.iter().chain([key]).map(String::as_str).collect::<Vec<_>>().join("."));
    Error::Unknown { origin: origin.to_owned(), key: path.join("."), suggestion }
}

fn wrong(path: &[String], origin: &str, reason: String) -> Error {
    Error::Value { origin: origin.to_owned(), key: path.join("."), reason }
}
